package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"peermesh/ops"
)

// TestTrainBadFiles gives what a look at the flags alone cannot find wrong.
func TestTrainBadFiles(t *testing.T) {
	data := writeDigits(t)
	broken := func(change func(dir string)) string {
		dir := writeDigits(t)
		change(dir)
		return dir
	}
	notKey := filepath.Join(t.TempDir(), "key")
	write(t, notKey, []byte("hello"))
	openKey := filepath.Join(t.TempDir(), "key")
	in("id", "--identity", openKey)
	if err := os.Chmod(notKey, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(openKey, 0o640); err != nil {
		t.Fatal(err)
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	_, port, _ := net.SplitHostPort(taken.Addr().String())

	tests := []struct {
		name string
		args []string
		want string
	}{
		{"no folder", []string{"--data", "/nonexistent"}, "no such file or directory"},
		{"empty folder", []string{"--data", t.TempDir()}, "no train-images-idx3-ubyte.gz in this folder"},
		{"a file", []string{"--data", filepath.Join(data, "t10k-labels-idx1-ubyte")}, "not a folder"},
		{"truncated", []string{"--data", broken(func(dir string) {
			if err := os.Truncate(filepath.Join(dir, "train-images-idx3-ubyte"), 1000); err != nil {
				t.Fatal(err)
			}
		})}, "truncated"},
		{"corrupt", []string{"--data", broken(func(dir string) {
			write(t, filepath.Join(dir, "t10k-labels-idx1-ubyte"), []byte("hello world"))
		})}, "not an IDX file"},
		{"bad data for a launch", []string{"launch", "-n", "2", "--data", t.TempDir()}, "--data names a folder with the four MNIST files"},
		{"not a key", []string{"--data", data, "--identity", notKey}, "is not a libp2p private key"},
		{"an open key", []string{"--data", data, "--identity", openKey}, "chmod 600"},
		{"address in use", []string{"--data", data, "--listen", "/ip4/127.0.0.1/tcp/" + port}, "address in use"},
		{"not an address", []string{"--data", data, "--listen", "localhost:4001"}, "not a multiaddr"},
		{"another transport", []string{"--data", data, "--transport", "quic", "--listen", "/ip4/127.0.0.1/tcp/0"}, "none of its transports"},
		{"a long mesh name", []string{"--data", data, "--mesh", strings.Repeat("m", 1000)}, "1 to 64 bytes"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			status, _, stderr := in(test.args...)
			if status != statusUsage || !strings.Contains(stderr, test.want) {
				t.Errorf("status %d, stderr %q; want 2 and %q", status, stderr, test.want)
			}
			isOneLine(t, stderr)
		})
	}
}

// TestTrainAlone is a world of one, with the same code.
func TestTrainAlone(t *testing.T) {
	status, stdout, stderr := in("--data", writeDigits(t), "--net", "tutorial", "--steps", "3", "--threads", "1", "--log-level", "error")
	if status != 0 || stderr != "" {
		t.Errorf("status %d, stderr %q", status, stderr)
	}
	for _, want := range []string{"rank 0 of 1 is 12D3KooW", "3 steps, batch 128 on each of 1 ranks", "Rank 0 , epoch 1 : ", "on each of 1 ranks", "test accuracy "} {
		if !strings.Contains(stdout, want) {
			t.Errorf("stdout lacks %q:\n%s", want, stdout)
		}
	}
}

// TestIdentified has every error that is about a rank name its peer, and no other.
func TestIdentified(t *testing.T) {
	peer := func(rank int) string { return fmt.Sprint("peer-", rank) }
	for _, test := range []struct {
		err  error
		want string
	}{
		{&ops.AbortedError{Rank: 2, Reason: "no more"}, " (rank 2 is peer-2)"},
		{&ops.MismatchError{Rank: 0}, " (rank 0 is peer-0)"},
		{errors.New("other"), ""},
	} {
		wrapped := fmt.Errorf("epoch 1, step 3: %w", test.err)
		got := identified(wrapped, peer)
		if got.Error() != wrapped.Error()+test.want || !errors.Is(got, test.err) {
			t.Errorf("got %q, want %q", got, wrapped.Error()+test.want)
		}
	}
	if err := identified(nil, peer); err != nil {
		t.Errorf("no error has become %v", err)
	}
}
