package main

import (
	"encoding/json"
	"net/netip"
	"strings"
	"testing"
	"time"

	"peermesh/gpu"
)

// sound is a machine that nothing is wrong with.
func sound() vitals {
	return vitals{Version: "peer v1", CPUs: 8, Vector: true, Features: []string{"AVX2"}, Files: 1 << 16, HardFiles: 1 << 20,
		RecvUDP: wantBuffer, SendUDP: wantBuffer, MTUs: map[string]int{"eth0": 1500}, Addrs: []netip.Addr{netip.MustParseAddr("203.0.113.5")},
		Shm: 1 << 30, GPUs: gpu.Survey{Devices: []gpu.Card{{Name: "H", Capability: "9.0", Arithmetic: "device"}}, Driver: gpu.Library{Version: "12.4"}}, Bootstrap: &way{ID: "x", Clock: true, Round: time.Millisecond, Skew: 3 * time.Millisecond,
			Observed: netip.MustParseAddr("203.0.113.5"), Tries: []try{{Addr: "/ip4/198.51.100.1/tcp/1", Took: time.Millisecond}}}}
}

// TestExamineSound finds no fault.
func TestExamineSound(t *testing.T) {
	for _, f := range examine(sound()) {
		if f.Level != fine || f.Mend != "" {
			t.Errorf("%+v", f)
		}
	}
}

// TestExamineUnknown finds no fault with what is not known.
func TestExamineUnknown(t *testing.T) {
	for _, f := range examine(vitals{}) {
		if f.Level == fatal || f.Level == worse && f.What != "addresses" {
			t.Errorf("%+v", f)
		}
	}
}

// TestExamine spoils one thing at a time, and wants that found, with its remedy.
func TestExamine(t *testing.T) {
	for _, c := range []struct {
		spoil func(v *vitals)
		level level
		what  string
		found string
		mend  string
	}{
		{func(v *vitals) { v.Features = nil }, worse, "processor", "without AVX2", "-cpu host"},
		{func(v *vitals) { v.Files, v.HardFiles = 40, 40 }, fatal, "open files", "40", "echo '* hard nofile 4096' | sudo tee /etc/security/limits.d/peermesh.conf, log in anew, and ulimit -n 4096"},
		{func(v *vitals) { v.Files = 256 }, worse, "open files", "256", "ulimit -n 4096"},
		{func(v *vitals) { v.RecvUDP = 212992 }, worse, "UDP buffer", "rmem_max is 212992", "sudo sysctl -w net.core.rmem_max=7340032"},
		{func(v *vitals) { v.SendUDP = 1 }, worse, "UDP buffer", "wmem_max", "sudo sysctl -w net.core.wmem_max"},
		{func(v *vitals) { v.MTUs["tun0"] = 1200 }, worse, "MTU", "tun0 has 1200", "ip link set tun0 mtu 1500"},
		{func(v *vitals) {
			v.GPUs = gpu.Survey{Module: "550.1", Lacks: []gpu.Lack{{What: "driver", Why: "no libcuda.so.1:\nno such file", Mend: "install NVIDIA's driver"}}}
		}, worse, "GPU driver", "no libcuda.so.1", "install NVIDIA's driver"},
		{func(v *vitals) { v.GPUs.Lacks = []gpu.Lack{{What: "NCCL", Why: "none"}} }, worse, "GPU NCCL", "none", "peer gpu"},
		{func(v *vitals) { v.Shm = -1 }, worse, "shared memory", "none", "/dev/shm"},
		{func(v *vitals) { v.Shm = 1 << 20 }, worse, "shared memory", "1 MiB", "size=1g"},
		{func(v *vitals) { v.Addrs, v.Bootstrap.Observed = nil, netip.Addr{} }, worse, "addresses", "only loopback", "ip link set"},
		{func(v *vitals) {
			v.Addrs, v.Bootstrap.Observed = []netip.Addr{netip.MustParseAddr("10.0.0.7")}, netip.Addr{}
		}, fine, "addresses", "private", "peer --nat --bootstrap"},
		{func(v *vitals) { v.Bootstrap.Observed = netip.MustParseAddr("192.0.2.9") }, worse, "NAT", "192.0.2.9", "peer --nat --bootstrap"},
		{func(v *vitals) { v.Bootstrap.Skew = -3 * time.Second }, worse, "clock", "-3s", "timedatectl"},
		{func(v *vitals) { v.Bootstrap.Skew = time.Hour }, fatal, "clock", "1h", "timedatectl"},
		{func(v *vitals) { v.Bootstrap.Tries[0].Err = "connection refused" }, fatal, "bootstrap", "refused", "sudo ufw allow 1/tcp"},
		{func(v *vitals) { v.Bootstrap.Tries[0].Err = "peer id mismatch: x" }, fatal, "bootstrap", "another peer", "peer id --identity"},
		{func(v *vitals) { v.Bootstrap.Tries[0].Err = "it speaks in secret" }, fatal, "bootstrap", "secret", "--secret FILE"},
		{func(v *vitals) {
			v.Bootstrap.Tries = append(v.Bootstrap.Tries, try{Addr: "/ip4/1.2.3.4/udp/5/quic-v1", Err: "no"})
		}, worse, "bootstrap", "/udp/5/quic-v1 cannot", "sudo ufw allow 5/udp"},
	} {
		v := sound()
		c.spoil(&v)
		ill := 0
		for _, f := range examine(v) {
			if f.Level == fine && f.Mend == "" {
				continue
			}
			ill++
			if f.Level != c.level || f.What != c.what || !strings.Contains(f.Found, c.found) || !strings.Contains(f.Mend, c.mend) {
				t.Errorf("want %s %s %q %q, got %+v", c.level, c.what, c.found, c.mend, f)
			}
		}
		if ill == 0 {
			t.Errorf("%s is not found", c.what)
		}
	}
}

// TestDoctor looks at this machine, and at a peer of it.
func TestDoctor(t *testing.T) {
	h := newHost(t)
	status, out, errs := in("doctor", "--json", "--bootstrap", h.addr)
	if status != 0 {
		t.Errorf("status %d: %s%s", status, out, errs)
	}
	seen := make(map[string]finding)
	for line := range strings.Lines(out) {
		var f finding
		if err := json.Unmarshal([]byte(line), &f); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		seen[f.What] = f
	}
	for _, what := range []string{"version", "processor", "bootstrap", "clock"} {
		if f := seen[what]; f.Level != fine {
			t.Errorf("%s: %+v", what, f)
		}
	}
	where, _ := h.parts()
	_, id, _ := in("id", "--identity", t.TempDir()+"/key")
	status, out, _ = in("doctor", "--bootstrap", where+"/p2p/"+strings.TrimSpace(id))
	if status != statusFailed || !strings.Contains(out, "fail  bootstrap") || !strings.Contains(out, "is another peer") {
		t.Errorf("of another: status %d: %s", status, out)
	}
	if status, _, errs := in("doctor", "--bootstrap", "nowhere"); status != statusUsage {
		t.Errorf("of nowhere: %d, %s", status, errs)
	}
}
