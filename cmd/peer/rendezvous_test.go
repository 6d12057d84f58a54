package main

import (
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

func TestListenAt(t *testing.T) {
	loop4, loop6, far := net.IPv4(127, 0, 0, 1), net.IPv6loopback, net.IPv4(203, 0, 113, 1)
	tests := []struct {
		host string
		ips  []net.IP
		want string
	}{
		{"127.0.0.1", []net.IP{loop4}, "/ip4/127.0.0.1/tcp/1"},
		{"::1", []net.IP{loop6}, "/ip6/::1/tcp/1"},
		{"localhost", []net.IP{loop6, loop4}, "/ip6/::1/tcp/1 /ip4/127.0.0.1/tcp/1"},
		{"this-machine", []net.IP{loop4}, "/ip4/0.0.0.0/tcp/1"},
		{"elsewhere", []net.IP{far}, ""},
		{"203.0.113.1", []net.IP{far}, ""},
	}
	for _, test := range tests {
		if got := strings.Join(listenAt(test.ips, "1", test.host), " "); got != test.want {
			t.Errorf("%s: %s, want %s", test.host, got, test.want)
		}
	}
	got := meetingPorts(t.Context(), []string{"lan", "file:///x", "tcp://127.0.0.1:5", "tcp://127.0.0.1:5", "/ip4/127.0.0.1/tcp/1/p2p/x"})
	if !slices.Equal(got, []string{"/ip4/127.0.0.1/tcp/5"}) {
		t.Errorf("listens at %v", got)
	}
}

// TestMeet has two peers start with the same words, of which neither is the first.
func TestMeet(t *testing.T) {
	t.Parallel()
	data := writeDigits(t)
	for _, form := range []string{"tcp://127.0.0.1:" + fmt.Sprint(freePort(t)), "tcp://[::1]:" + fmt.Sprint(freePort(t)), "file://" + t.TempDir()} {
		var both []*spawned
		for range 2 {
			both = append(both, spawn(t, "--bootstrap", form, "--world", "2", "--data", data, "--steps", "2", "--transport", "tcp", "--wait", "30s"))
		}
		for i, s := range both {
			if status := s.wait(t); status != 0 {
				t.Errorf("%s: peer %d ends with status %d", form, i, status)
			}
		}
	}
}

// TestMeetByDHT has two peers find each other by the DHT that a third peer serves, who
// waits for somebody else in a mesh of its own, and then two launchers.
func TestMeetByDHT(t *testing.T) {
	t.Parallel()
	data := writeDigits(t)
	key := filepath.Join(t.TempDir(), "key")
	_, id, _ := in("id", "--identity", key)
	at := fmt.Sprintf("/ip4/127.0.0.1/tcp/%d", freePort(t))
	known := at + "/p2p/" + strings.TrimSpace(id)
	common := []string{"--bootstrap", "dht", "--dht", known, "--data", data, "--steps", "2", "--transport", "tcp", "--world", "2"}
	server := spawn(t, append(common, "--mesh", "other", "--identity", key, "--listen", at)...)
	var both []*spawned
	for range 2 {
		both = append(both, spawn(t, append(common, "--listen", "/ip4/127.0.0.1/tcp/0")...))
	}
	for _, id := range []string{"0", "1"} {
		both = append(both, spawn(t, "launch", "--num-machines", "2", "-n", "1", "--machine-id", id, "--mesh", "launched",
			"--rendezvous", "dht", "--dht", known, "--data", data, "--steps", "2", "--transport", "tcp"))
	}
	for i, s := range both {
		if status := s.wait(t); status != 0 {
			t.Errorf("%d: status %d", i, status)
		}
	}
	server.signal(t, syscall.SIGINT)
	server.wait(t)
}

// TestMeetErrors says in one line what is wrong with a form.
func TestMeetErrors(t *testing.T) {
	for form, want := range map[string]string{
		"tcp://host":           "want tcp://host:port",
		"file://host/x":        "three slashes",
		"/ip4/127.0.0.1/tcp/1": "lacks the peer's ID",
		"nowhere":              "is not a multiaddr",
	} {
		status, _, errs := in("--bootstrap", form, "--world", "2")
		if status != statusUsage || !strings.Contains(errs, want) {
			t.Errorf("%s: status %d, %q", form, status, errs)
		}
		isOneLine(t, errs)
	}
	status, _, errs := in("--bootstrap", "lan", "--world", "2", "--nat")
	if status != statusUsage || !strings.Contains(errs, "--nat is given without --bootstrap") {
		t.Errorf("status %d, %q", status, errs)
	}
}
