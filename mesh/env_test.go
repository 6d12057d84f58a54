package mesh

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"peermesh/node"
)

// env is the environment that a table writes as "A=1 B=x,y"; a blank in a value is a tab.
func env(vars string) environ {
	all := make(map[string]string)
	for _, v := range strings.Fields(vars) {
		name, value, _ := strings.Cut(v, "=")
		all[name] = value
	}
	return environ{get: func(name string) string { return all[name] }}
}

// TestFromEnv reads what each of those says who start processes.
func TestFromEnv(t *testing.T) {
	tests := []struct {
		name, vars string
		listen     []string
		want       Config
	}{
		{"peer launch",
			"PEERMESH_WORLD=4 PEERMESH_BOOTSTRAP=file:///tmp/x,lan PEERMESH_MESH=run PEERMESH_IDENTITY=/k PEERMESH_WAIT=2m RANK=0",
			nil, Config{World: 4, Name: "run", Bootstrap: []string{"file:///tmp/x", "lan"}, Wait: 2 * time.Minute}},
		{"by a DHT",
			"PEERMESH_WORLD=4 PEERMESH_BOOTSTRAP=dht PEERMESH_DHT=/ip4/192.0.2.7/tcp/1/p2p/x,/ip6/::1/tcp/1/p2p/y",
			nil, Config{World: 4, Bootstrap: []string{"dht"}, DHT: []string{"/ip4/192.0.2.7/tcp/1/p2p/x", "/ip6/::1/tcp/1/p2p/y"}}},
		{"survivors go on",
			"PEERMESH_WORLD=4 PEERMESH_BOOTSTRAP=lan PEERMESH_MIN=2 PEERMESH_QUORUM=any PEERMESH_IDENTITY=/k",
			nil, Config{World: 4, Min: 2, Quorum: Any, State: "/k.world", Bootstrap: []string{"lan"}}},
		{"alone", "WORLD_SIZE=1", nil, Config{World: 1}},
		{"torchrun, first", "WORLD_SIZE=2 RANK=0 MASTER_ADDR=n1 MASTER_PORT=1234",
			[]string{"/ip4/0.0.0.0/tcp/1234"}, Config{World: 2, Bootstrap: []string{"tcp://n1:1234"}}},
		{"torchrun, second", "WORLD_SIZE=2 RANK=1 MASTER_ADDR=n1",
			nil, Config{World: 2, Bootstrap: []string{"tcp://n1:29500"}}},
		{"on one machine", "WORLD_SIZE=2 RANK=0 MASTER_ADDR=localhost",
			[]string{"/ip4/127.0.0.1/tcp/29500"}, Config{World: 2, Bootstrap: []string{"tcp://localhost:29500"}}},
		{"over IPv6", "WORLD_SIZE=2 RANK=0 MASTER_ADDR=2001:db8::1",
			[]string{"/ip6/::/tcp/29500"}, Config{World: 2, Bootstrap: []string{"tcp://[2001:db8::1]:29500"}}},
		{"over IPv6 on one machine", "WORLD_SIZE=2 RANK=0 MASTER_ADDR=::1",
			[]string{"/ip6/::1/tcp/29500"}, Config{World: 2, Bootstrap: []string{"tcp://[::1]:29500"}}},
		{"one that says where it listens", "WORLD_SIZE=2 RANK=0 MASTER_ADDR=n1 PEERMESH_LISTEN=/ip4/10.0.0.1/tcp/29500",
			[]string{"/ip4/10.0.0.1/tcp/29500"}, Config{World: 2, Bootstrap: []string{"tcp://n1:29500"}}},
		{"Slurm, first", "SLURM_NTASKS=8 SLURM_PROCID=0 SLURM_JOB_ID=4711 SLURM_JOB_NODELIST=gpu[03-05,9],x",
			[]string{"/ip4/0.0.0.0/tcp/24711"}, Config{World: 8, Name: "slurm-4711", Bootstrap: []string{"tcp://gpu03:24711"}}},
		{"Slurm, last", "SLURM_NTASKS=8 SLURM_PROCID=7 SLURM_JOB_ID=4711 SLURM_JOB_NODELIST=n1 PEERMESH_PORT=99",
			nil, Config{World: 8, Name: "slurm-4711", Bootstrap: []string{"tcp://n1:99"}}},
		{"torchrun within Slurm", "SLURM_NTASKS=2 SLURM_PROCID=0 SLURM_JOB_ID=1 SLURM_JOB_NODELIST=n1 WORLD_SIZE=4 RANK=3 MASTER_ADDR=n2",
			nil, Config{World: 4, Name: "slurm-1", Bootstrap: []string{"tcp://n2:29500"}}},
		{"Kubernetes, first", "PEERMESH_WORLD=3 JOB_COMPLETION_INDEX=0 HOSTNAME=train-mnist-0 PEERMESH_SERVICE=peers",
			[]string{"/ip4/0.0.0.0/tcp/29500"}, Config{World: 3, Name: "train-mnist", Bootstrap: []string{"tcp://train-mnist-0.peers:29500"}}},
		{"Kubernetes, third", "PEERMESH_WORLD=3 JOB_COMPLETION_INDEX=2 HOSTNAME=train-mnist-2 PEERMESH_SERVICE=peers.ml.svc",
			nil, Config{World: 3, Name: "train-mnist", Bootstrap: []string{"tcp://train-mnist-0.peers.ml.svc:29500"}}},
	}
	for _, test := range tests {
		n, c, err := env(test.vars).configs()
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		if len(n.Listen) != len(test.listen) || len(n.Listen) > 0 && !reflect.DeepEqual(n.Listen, test.listen) {
			t.Errorf("%s: listens on %v, want %v", test.name, n.Listen, test.listen)
		}
		if !reflect.DeepEqual(c, orEmpty(test.want)) {
			t.Errorf("%s:\n got %+v\nwant %+v", test.name, c, test.want)
		}
	}
}

// orEmpty has an empty list of bootstrap peers be one, as a reader of variables does.
func orEmpty(c Config) Config {
	if c.Bootstrap == nil {
		c.Bootstrap = []string{}
	}
	if c.DHT == nil {
		c.DHT = []string{}
	}
	return c
}

// TestFromEnvErrors wants each error to name the variable.
func TestFromEnvErrors(t *testing.T) {
	slurm := "SLURM_NTASKS=2 SLURM_JOB_ID=1 "
	pod := "PEERMESH_WORLD=2 JOB_COMPLETION_INDEX=1 "
	tests := []struct{ vars, want string }{
		{"", "PEERMESH_WORLD is not set, and neither is WORLD_SIZE or SLURM_NTASKS"},
		{"PEERMESH_WORLD=many", `PEERMESH_WORLD is "many", want a number from 1 to 1024`},
		{"WORLD_SIZE=0", `WORLD_SIZE is "0"`},
		{"SLURM_NTASKS=1025", `SLURM_NTASKS is "1025"`},
		{"PEERMESH_WORLD=2", "PEERMESH_BOOTSTRAP is not set, and neither is MASTER_ADDR"},
		{"PEERMESH_WORLD=2 PEERMESH_MIN=3", `PEERMESH_MIN is "3", want a number from 1 to 2`},
		{"PEERMESH_WORLD=2 PEERMESH_WAIT=5", `PEERMESH_WAIT is "5", want a time such as 5m`},
		{"PEERMESH_WORLD=2 PEERMESH_WAIT=-5m", `PEERMESH_WAIT is "-5m"`},
		{"PEERMESH_WORLD=2 PEERMESH_QUORUM=some", `PEERMESH_QUORUM is "some", want majority or any`},
		{"WORLD_SIZE=2 MASTER_ADDR=n1", "RANK is not set"},
		{"WORLD_SIZE=2 MASTER_ADDR=n1 RANK=-1", `RANK is "-1"`},
		{"WORLD_SIZE=2 MASTER_ADDR=n1 RANK=0 MASTER_PORT=x", `MASTER_PORT is "x", want a number from 1 to 65535`},
		{slurm, "SLURM_JOB_NODELIST is not set"},
		{slurm + "SLURM_JOB_NODELIST=n[1", `SLURM_JOB_NODELIST is "n[1": its brackets do not match`},
		{slurm + "SLURM_JOB_NODELIST=n1", "SLURM_PROCID is not set"},
		{slurm + "SLURM_JOB_NODELIST=n1 SLURM_PROCID=x", `SLURM_PROCID is "x"`},
		{slurm + "SLURM_JOB_NODELIST=n1 PEERMESH_PORT=0", `PEERMESH_PORT is "0"`},
		{pod, "PEERMESH_SERVICE is not set"},
		{pod + "PEERMESH_SERVICE=s HOSTNAME=elsewhere", `HOSTNAME is "elsewhere", want the job's name and -1`},
	}
	for _, test := range tests {
		_, _, err := env(test.vars).configs()
		if err == nil || !strings.Contains(err.Error(), test.want) || !strings.HasPrefix(err.Error(), "mesh: ") {
			t.Errorf("%q: %v, want %q", test.vars, err, test.want)
		}
	}
}

// TestFromEnvFiles reads a secret and a list, and says by which variable a file is named
// that cannot be read.
func TestFromEnvFiles(t *testing.T) {
	for _, name := range []string{"WORLD_SIZE", "SLURM_JOB_ID", "JOB_COMPLETION_INDEX", EnvBootstrap, EnvMin} {
		t.Setenv(name, "")
	}
	t.Setenv(EnvWorld, "1")
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("sixteen bytes, or more of them"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv(EnvSecret, secret)
	n, c, err := FromEnv()
	if err != nil || len(n.Secret) == 0 || c.World != 1 || n.Peers != node.DefaultPeers {
		t.Errorf("%+v, %+v, %v", n, c, err)
	}
	t.Setenv(EnvAllow, secret+".none")
	if _, _, err := FromEnv(); err == nil || !strings.Contains(err.Error(), EnvAllow) {
		t.Errorf("a list that is not there: %v", err)
	}
	t.Setenv(EnvSecret, secret+".none")
	if _, _, err := FromEnv(); err == nil || !strings.Contains(err.Error(), EnvSecret) {
		t.Errorf("a secret that is not there: %v", err)
	}
}

func TestNodes(t *testing.T) {
	tests := []struct{ list, want string }{
		{"n1", "n1"},
		{"n1,n2", "n1 n2"},
		{"n[1-3,07],gpu", "n1 n2 n3 n07 gpu"},
		{"n[08-11]", "n08 n09 n10 n11"},
		{"r[1-2]n[1-2]-ib", "r1n1-ib r1n2-ib r2n1-ib r2n2-ib"},
		{"[1-2]", "1 2"},
	}
	for _, test := range tests {
		got, err := Nodes(test.list)
		if err != nil || strings.Join(got, " ") != test.want {
			t.Errorf("%q: %v, %v; want %s", test.list, got, err, test.want)
		}
	}
	for _, list := range []string{"", ",", "n1,", "n[", "n]", "n[1", "n[[1]]", "n[]", "n[2-1]", "n[x]", "n[1-]", "n[-1]", "n[+1]",
		"n[0-65536]", "n[0-999][0-999]", "n[1-99999999999]", "n[1-40000],m[1-40000]", strings.Repeat("x", maxHost+1)} {
		if got, err := Nodes(list); err == nil {
			t.Errorf("%q is %d nodes", list, len(got))
		}
	}
}

// FuzzNodes wants no panic, no more nodes than there may be, and plain names, in
// which nothing is left to expand.
func FuzzNodes(f *testing.F) {
	for _, list := range []string{"n1", "n[1-3,07],gpu", "r[1-2]n[1-2]", "n[", "a[0-65535]", "[[", "n[1-3", "a,,b"} {
		f.Add(list)
	}
	f.Fuzz(func(t *testing.T, list string) {
		hosts, err := Nodes(list)
		if err != nil {
			return
		}
		if len(hosts) == 0 || len(hosts) > MaxNodes {
			t.Fatalf("%d nodes", len(hosts))
		}
		for _, h := range hosts[:min(len(hosts), 100)] {
			if again, err := Nodes(h); err != nil || len(again) != 1 || again[0] != h {
				t.Fatalf("%q becomes %v, %v", h, again, err)
			}
		}
	})
}
