package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/libp2p/go-libp2p/core/peer"

	"peermesh/mesh"
)

// TestLaunchStranger tells another program its place.
func TestLaunchStranger(t *testing.T) {
	script := `echo "$RANK of $WORLD_SIZE, $LOCAL_RANK of $LOCAL_WORLD_SIZE here, $PEERMESH_MESH, ${PEERMESH_BOOTSTRAP%%:*}, $PEERMESH_LISTEN"; test -s "$PEERMESH_IDENTITY"`
	t.Setenv("WORLD_SIZE", "99") // what was there before does not count
	s := spawn(t, "launch", "-n", "2", "--mesh", "run", "--transport", "tcp", "--", "sh", "-c", script)
	if status := s.wait(t); status != 0 {
		t.Fatalf("status %d", status)
	}
	for rank := range 2 {
		if want := fmt.Sprintf("[%d] %[1]d of 2, %[1]d of 2 here, run, file, /ip4/127.0.0.1/tcp/0\n", rank); !strings.Contains(s.out(), want) {
			t.Errorf("stdout lacks %q", want)
		}
	}
	s = spawn(t, "launch", "-n", "2", "--", "sh", "-c", `exit $((RANK * 5))`)
	if status := s.wait(t); status != 5 || !strings.Contains(s.errs(), "peer: rank 1 failed first: ") {
		t.Errorf("status %d, %q", status, s.errs())
	}
	status, _, errs := in("launch", "-n", "2", "--", "/no/such/trainer", "-x", "-1")
	if isOneLine(t, errs); status != statusUsage || !strings.Contains(errs, "/no/such/trainer cannot be started") {
		t.Errorf("status %d, %q", status, errs)
	}
}

// TestLaunchRestarts starts a rank again that fails, and gives up at the second time.
func TestLaunchRestarts(t *testing.T) {
	t.Parallel()
	script := `n=$(cat r$RANK 2>/dev/null || echo 0); echo $((n+1)) > r$RANK; test $n -ge $((RANK * ` + "%d" + `))`
	for fails, want := range map[int]int{1: 0, 3: 1} {
		cmd := peerCommand(t, "launch", "-n", "2", "--restart", "on-failure", "--max-restarts", "2", "--", "sh", "-c", fmt.Sprintf(script, fails))
		cmd.Dir = t.TempDir()
		s := watched(t, cmd)
		if status := s.wait(t); status != want {
			t.Errorf("a rank that fails %d times: status %d, want %d", fails, status, want)
		}
		if times := strings.Count(s.errs(), "it is started again"); times != min(fails, 2) {
			t.Errorf("a rank that fails %d times was started again %d times", fails, times)
		}
	}
}

// TestLaunchRevives kills a rank of our own trainer: it comes back to the others.
func TestLaunchRevives(t *testing.T) {
	t.Parallel()
	s := spawn(t, "launch", "-v", "-n", "3", "--min", "2", "--restart", "on-failure", "--data", writeDigits(t), "--epochs", "1000000", "--batch-size", "16", "--threads", "1")
	pids := s.pids(t, 3)
	eventually(t, "an epoch", func() bool { return strings.Contains(s.out(), "epoch 1/1000000") })
	if err := syscall.Kill(pids[2], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	again := regexp.MustCompile(`rank 2 is process (\d+)`)
	var pid int
	eventually(t, "rank 2 in a new process", func() bool {
		all := again.FindAllStringSubmatch(s.errs(), -1)
		pid, _ = strconv.Atoi(all[len(all)-1][1])
		return len(all) == 2
	})
	whole := regexp.MustCompile(`world (\d+): this peer is rank 2 of 3`)
	eventually(t, "a world of three again", func() bool { return len(whole.FindAllString(s.errs(), -1)) >= 2 })
	s.signal(t, syscall.SIGINT)
	if status := s.wait(t); status != 130 {
		t.Errorf("status %d, want 130", status)
	}
	allGone(t, []int{pids[0], pids[1], pid})
}

// TestLaunchRankLogs keeps what ranks print, with and without printing it.
func TestLaunchRankLogs(t *testing.T) {
	t.Parallel()
	for _, tee := range []bool{false, true} {
		dir := filepath.Join(t.TempDir(), "logs")
		args := []string{"launch", "-n", "2", "--rank-logs", dir}
		if tee {
			args = append(args, "--tee")
		}
		s := spawn(t, append(args, "--", "sh", "-c", "echo out $RANK; echo err $RANK >&2")...)
		if status := s.wait(t); status != 0 {
			t.Fatalf("status %d", status)
		}
		for rank := range 2 {
			for _, kind := range []string{"out", "err"} {
				want := fmt.Sprintf("%s %d\n", kind, rank)
				if got, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("rank-%d.%s", rank, kind))); err != nil || string(got) != want {
					t.Errorf("%s of rank %d: %q, %v", kind, rank, got, err)
				}
				if printed := strings.Contains(s.out()+s.errs(), fmt.Sprintf("[%d] %s", rank, want)); printed != tee {
					t.Errorf("--tee %v: printed %v", tee, printed)
				}
			}
		}
	}
}

// TestLaunchMachines trains on two launchers that meet at a port, by IPv6.
func TestLaunchMachines(t *testing.T) {
	t.Parallel()
	meet, data := fmt.Sprintf("tcp://[::1]:%d", freePort(t)), writeDigits(t)
	var all []*spawned
	for _, id := range []string{"1", "0"} {
		all = append(all, spawn(t, "launch", "--num-machines", "2", "--num-processes", "2", "--machine-id", id, "--rendezvous", meet,
			"--data", data, "--steps", "2", "--transport", "tcp"))
	}
	for i, s := range all {
		if status := s.wait(t); status != 0 {
			t.Fatalf("status %d", status)
		}
		for local := range 2 { // prefixes tell ranks, also those of the other launcher
			rank := 2*(1-i) + local
			if want := fmt.Sprintf("[%d] rank %[1]d of 4 is 12D3KooW", rank); !strings.Contains(s.out(), want) {
				t.Errorf("stdout lacks %q", want)
			}
		}
	}
}

// TestLaunchSSH starts machines by what stands in for ssh, and ends them with itself.
func TestLaunchSSH(t *testing.T) {
	dir := t.TempDir()
	ssh := filepath.Join(dir, "ssh")
	script := fmt.Sprintf("#!/bin/sh\necho \"$1\" >> %s/hosts\nshift\nexec sh -c \"$*\"\n", dir)
	hosts := filepath.Join(dir, "hosts.txt")
	if err := os.WriteFile(ssh, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(hosts, []byte("# two\nme@one.test slots=1\ntwo.test\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	args := []string{"launch", "-v", "-n", "2", "--machines", hosts, "--remote-peer", program(t), "--", "sh", "-c"}
	s := spawn(t, append(args, `echo "$RANK of $WORLD_SIZE by $PEERMESH_BOOTSTRAP in $PWD"`)...)
	if status := s.wait(t); status != 0 {
		t.Fatalf("status %d", status)
	}
	here, _ := os.Getwd()
	for rank := range 3 {
		if want := fmt.Sprintf("[%d] %[1]d of 3 by tcp://one.test:29500 in %s\n", rank, here); !strings.Contains(s.out(), want) {
			t.Errorf("stdout lacks %q", want)
		}
	}
	if got, err := os.ReadFile(filepath.Join(dir, "hosts")); err != nil || !slices.Equal(slices.Sorted(slices.Values(strings.Fields(string(got)))), []string{"me@one.test", "two.test"}) {
		t.Errorf("ssh was called for %q, %v", got, err)
	}
	s = spawn(t, append(args, "echo process $$; exec sleep 1000")...)
	process := regexp.MustCompile(`process (\d+)\n`)
	eventually(t, "all ranks", func() bool { return len(process.FindAllString(s.out(), -1)) == 3 })
	var pids []int
	for _, m := range process.FindAllStringSubmatch(s.out(), -1) {
		pid, _ := strconv.Atoi(m[1])
		pids = append(pids, pid)
	}
	s.signal(t, syscall.SIGKILL)
	s.wait(t)
	allGone(t, pids)
}

func TestReadMachines(t *testing.T) {
	got, err := readMachines(strings.NewReader("a\n\n# none\nb slots=3 # three\n"), 2)
	if err != nil || !slices.Equal(got, []site{{"a", 2}, {"b", 3}}) {
		t.Errorf("%v, %v", got, err)
	}
	for text, want := range map[string]string{
		"": "no host", "# a\n": "no host", "-oProxyCommand=x": "is no host", "a slots=0": "is not slots=N",
		"a cpus=3": "is not slots=N", "a slots=1000\nb slots=100": "more than 1024", "a slots=1 2": "is not slots=N",
	} {
		if got, err := readMachines(strings.NewReader(text), 2); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, %v; want %s", text, got, err, want)
		}
	}
}

// FuzzMachines wants no more ranks than a world has.
func FuzzMachines(f *testing.F) {
	f.Add("a\nb slots=3 # three\n")
	f.Fuzz(func(t *testing.T, text string) {
		all, err := readMachines(strings.NewReader(text), 2)
		ranks := 0
		for _, m := range all {
			ranks += m.slots
		}
		if err == nil && (ranks < 1 || ranks > mesh.MaxWorld) {
			t.Fatalf("%d ranks", ranks)
		}
	})
}

// TestSettle reads the place of a machine among others.
func TestSettle(t *testing.T) {
	slurm := map[string]string{"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "n[2-4]", "SLURM_NNODES": "3", "SLURM_NODEID": "2"}
	pod := map[string]string{"JOB_COMPLETION_INDEX": "1", "HOSTNAME": "job-1", "PEERMESH_SERVICE": "svc"}
	tests := []struct {
		name string
		in   Placement
		env  map[string]string
		want string // rendezvous, world, first; or an error
	}{
		{"Slurm", Placement{Slurm: true}, slurm, "tcp://n2:20007 12 8"},
		{"Slurm by a file", Placement{Slurm: true, Rendezvous: "file:///x"}, slurm, "file:///x 12 8"},
		{"Kubernetes", Placement{K8s: true, NumMachines: 2}, pod, "tcp://job-0.svc:29500 8 4"},
		{"flags", Placement{NumMachines: 3, MachineID: 1, Rendezvous: "lan"}, nil, "lan 12 4"},
		{"no job", Placement{Slurm: true}, nil, "neither SLURM_JOB_ID nor JOB_COMPLETION_INDEX is set"},
		{"too few machines", Placement{K8s: true, NumMachines: 1}, pod, `JOB_COMPLETION_INDEX is "1", want a number from 0 to 0`},
	}
	for _, test := range tests {
		err := test.in.settle(4, func(name string) string { return test.env[name] })
		got := fmt.Sprint(test.in.Rendezvous, " ", test.in.world, " ", test.in.first)
		if err != nil {
			got = err.Error()
		}
		if got != test.want && (err == nil || !strings.Contains(got, test.want)) {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
	}
}

func TestPlacementErrors(t *testing.T) {
	for args, want := range map[string]string{
		"--num-machines 0":                     "--num-machines is 0",
		"--num-machines 2 --machine-id 2":      "--machine-id is 2",
		"--num-machines 2 --machine-id 1":      "--num-machines is given without --rendezvous",
		"--num-machines 1000 --rendezvous lan": "is 2000, want at most 1024",
		"--tee":                                "--tee is given without --rank-logs",
		"--max-restarts -1":                    "--max-restarts is -1",
		"--min 3":                              "--min is 3",
		"--slurm --k8s":                        "give one",
		"--rendezvous nowhere":                 "is not a multiaddr",
		"--machines /no/such/file":             "--machines: open /no/such/file",
		"--remote":                             "no errand on stdin",
	} {
		status, _, errs := in(append([]string{"launch", "-n", "2"}, strings.Fields(args)...)...)
		if isOneLine(t, errs); status != statusUsage || !strings.Contains(errs, want) {
			t.Errorf("%s: status %d, %q; want %s", args, status, errs, want)
		}
	}
}

func TestShareCores(t *testing.T) {
	n := len(ownCores())
	if shareCores("never", n) != nil || shareCores("always", n+1) != nil || shareCores("auto", n) != nil {
		t.Error("ranks are pinned that should not be")
	}
	if n < 2 {
		t.Skip("no two cores here, or no way to tell")
	}
	shares := shareCores("always", 2)
	if all := slices.Concat(shares...); len(shares) != 2 || !slices.Equal(all, ownCores()) {
		t.Errorf("%v of %v", shares, ownCores())
	}
	s := spawn(t, "launch", "-n", "2", "--pin", "always", "--", "nproc")
	if status := s.wait(t); status != 0 || !strings.Contains(s.out(), fmt.Sprintf("[0] %d\n", len(shares[0]))) {
		t.Errorf("status %d, %q", status, s.out())
	}
}

// TestKeysOfMachines wants the ranks of one machine to come after those of the one before.
func TestKeysOfMachines(t *testing.T) {
	const machines = 3
	var last peer.ID
	for i := range machines {
		keys, err := sortedKeys(4, i, machines)
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range keys {
			id, err := peer.IDFromPrivateKey(key)
			if err != nil || id <= last {
				t.Errorf("machine %d: %s after %s, %v", i, id, last, err)
			}
			last = id
		}
	}
}
