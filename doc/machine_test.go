package doc

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"peermesh/trainer/mnist"
)

// answerTime is how long a program may take to say that it has what it needs.
const answerTime = time.Minute

// trials are commands that succeed where there is more to a need than a program's name.
var trials = map[string]string{
	"root":     `[ "$(id -u)" = 0 ] && ip netns list`,
	"docker":   "docker info",
	"kubectl":  "kubectl version --request-timeout=5s",
	"slurm":    "sinfo",
	"systemd":  "false", // it would install a service here
	"gpu":      "[ -e /dev/nvidia0 ]",
	"torch":    "/usr/bin/python3 -c 'import torch'",
	"patience": "false", // for all tests, of which these are some
	"people":   "false", // an editor, a browser, another's machine
}

// lacks says what a block's need lacks here; empty: nothing.
func lacks(ctx context.Context, need string) string {
	trial, ok := trials[need]
	if !ok {
		_, err := exec.LookPath(need)
		if err != nil {
			return err.Error()
		}
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	if out, err := exec.CommandContext(ctx, "bash", "-c", trial).CombinedOutput(); err != nil {
		return fmt.Sprintf("%q: %v: %.200s", trial, err, out)
	}
	return ""
}

// pairs counts those of namespaces: pages are run at the same time.
var pairs atomic.Int32

// machines makes two network namespaces with a cable between them, and returns what to put
// before a command to run it in each. Addresses are of those that documents may use
// (RFC 5737).
func machines(t *testing.T) map[string][]string {
	t.Helper()
	prefix := make(map[string][]string)
	pair := pairs.Add(1)
	name := func(machine string) string { return fmt.Sprintf("pmdoc%d-%d%s", os.Getpid(), pair, machine) }
	run := func(line string) {
		t.Helper()
		words := strings.Fields(line)
		if out, err := exec.CommandContext(t.Context(), words[0], words[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", line, err, out)
		}
	}
	for _, m := range []string{"a", "b"} {
		run("ip netns add " + name(m))
		t.Cleanup(func() {
			if out, err := exec.Command("ip", "netns", "del", name(m)).CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
		prefix[m] = []string{"ip", "netns", "exec", name(m)}
	}
	run("ip -n " + name("a") + " link add lan type veth peer name lan netns " + name("b"))
	for m, addr := range map[string]string{"a": "192.0.2.7/24", "b": "192.0.2.8/24"} {
		run("ip -n " + name(m) + " addr add " + addr + " dev lan")
		run("ip -n " + name(m) + " link set lan up")
		run("ip -n " + name(m) + " link set lo up")
		run("ip -n " + name(m) + " route add default via 192.0.2.1")
	}
	return prefix
}

// digits writes images in MNIST's form, so few that an epoch takes no time: a class is a
// bright block at a place of its own, in noise.
func digits(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	rng := rand.New(rand.NewPCG(1, 2))
	for _, half := range []struct {
		name string
		n    uint32
	}{{"train", 256}, {"t10k", 64}} {
		images := binary.BigEndian.AppendUint32([]byte{0, 0, 8, 3}, half.n)
		images = append(images, 0, 0, 0, mnist.Side, 0, 0, 0, mnist.Side)
		labels := binary.BigEndian.AppendUint32([]byte{0, 0, 8, 1}, half.n)
		for i := range half.n {
			class := int(i) % mnist.Classes
			labels = append(labels, byte(class))
			for at := range mnist.Pixels {
				pixel := byte(rng.IntN(64))
				if at/mnist.Side/14 == class/5 && at%mnist.Side/5 == class%5 {
					pixel += 160
				}
				images = append(images, pixel)
			}
		}
		for kind, data := range map[string][]byte{"images-idx3": images, "labels-idx1": labels} {
			if err := os.WriteFile(filepath.Join(dir, half.name+"-"+kind+"-ubyte"), data, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	return dir
}
