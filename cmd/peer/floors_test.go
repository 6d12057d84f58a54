package main

import (
	"encoding/json"
	"errors"
	"go/parser"
	"go/token"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"peermesh/mesh"
	"peermesh/ops"
)

// The two halves of Peermesh, which have not heard of each other, fit.
var _ ops.Transport = (*mesh.World)(nil)

const module = "peermesh"

// A floor says what a package, with all below it, may build on. An entry ending
// in "/..." allows the packages below it too; the standard library is allowed
// to all. Third parties are named by their modules.
type floor struct {
	pkg    string   // within the module
	ours   []string // packages that it may import, its own subpackages apart
	others []string // third parties that it may import
	why    string
}

// floors is the architecture: a package that is not in it does not exist. Tests
// may import what they like.
var floors = []floor{
	{"internal", nil, nil,
		"small things that are the same on all floors"},
	{"ops/schedule", nil, nil,
		"what moves when is a value: it must be possible to reason about it without a network"},
	{"ops/tensor", nil, []string{"golang.org/x/sys/cpu"},
		"arithmetic needs nothing but to know the processor"},
	{"node", nil, []string{"github.com/libp2p/go-libp2p/...", "github.com/multiformats/...", "github.com/ipfs/go-log/v2", "go.uber.org/fx",
		"golang.org/x/sys/unix"},
		"one host, which knows nothing of worlds"},
	{"node/rendezvous/dht", []string{"node", "node/rendezvous"}, []string{"github.com/libp2p/go-libp2p/...", "github.com/libp2p/go-libp2p-kad-dht/...",
		"github.com/ipfs/go-cid", "github.com/ipfs/go-log/v2", "github.com/multiformats/..."},
		"what is large is linked by those alone who want it"},
	{"gpu", []string{"ops/tensor", "internal/bytesize"}, []string{"github.com/ebitengine/purego"},
		"a device is a kind of memory"},
	{"gpu/convnet", []string{"gpu", "gpu/internal/...", "ops/tensor", "trainer", "trainer/nn"}, nil,
		"a network on a device meets the trainer as any model does"},
	{"mesh", []string{"node", "node/rendezvous"}, []string{"github.com/libp2p/go-libp2p/core/...", "github.com/libp2p/go-libp2p-pubsub/...",
		"github.com/multiformats/go-multiaddr/...", "github.com/ipfs/go-log/v2"},
		"who takes part does not depend on what they compute"},
	{"ops", []string{"ops/schedule", "ops/tensor"}, []string{"github.com/ipfs/go-log/v2"},
		"collectives run on any transport that has the few methods they need"},
	{"ops/flight", []string{"ops", "ops/tensor"}, nil,
		"what is told of operations has nothing to do with what carries them"},
	{"trainer", []string{"ops", "ops/tensor"}, []string{"golang.org/x/sys/cpu"},
		"training must work on an in-memory world, and in programs without libp2p"},
	{"testnet", []string{"node", "mesh", "ops", "ops/...", "trainer", "trainer/...", "internal/bytesize"}, []string{"github.com/libp2p/go-libp2p/...",
		"github.com/multiformats/...", "github.com/quic-go/quic-go", "go.uber.org/fx"},
		"worlds for tests, on networks that obey them; no command"},
	{"testnet/memnet", nil, nil,
		"an in-memory world has nothing that can fail but the code under test"},
	{"cmd", []string{"..."}, []string{"..."},
		"flags and wiring"},
	{"doc", nil, nil,
		"pages, their tests, and what draws their pictures"},
	{"examples", []string{"..."}, []string{"..."},
		"programs as their readers would write them"},
}

// A pkg is what go list says of one package.
type pkg struct {
	ImportPath string
	Standard   bool
	Imports    []string // direct, without those of tests
	Deps       []string // all
}

// list asks the go command about packages.
func list(t *testing.T, args ...string) map[string]pkg {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"list", "-json=ImportPath,Standard,Imports,Deps"}, args...)...)
	cmd.Dir = filepath.Join("..", "..")
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, errs.String())
	}
	all := make(map[string]pkg)
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		switch err := d.Decode(&p); {
		case errors.Is(err, io.EOF):
			return all
		case err != nil:
			t.Fatal(err)
		}
		all[p.ImportPath] = p
	}
}

// TestFloors holds every package of the module to its floor.
func TestFloors(t *testing.T) {
	all := list(t, "-deps", "./...")
	for path, p := range all {
		name, mine := strings.CutPrefix(path, module+"/")
		if !mine {
			continue
		}
		f := floorOf(name)
		if f == nil {
			t.Errorf("%s is on no floor: the packages are those of the table above", name)
			continue
		}
		for _, imported := range p.Imports {
			if !f.allows(imported, all[imported].Standard) {
				t.Errorf("%s imports %s, and may not: %s", name, imported, f.why)
			}
		}
	}
}

// floorOf is the entry of a package or of the nearest one above it.
func floorOf(name string) *floor {
	var best *floor
	for i, f := range floors {
		if within(name, f.pkg) && (best == nil || len(f.pkg) > len(best.pkg)) {
			best = &floors[i]
		}
	}
	return best
}

func (f *floor) allows(path string, standard bool) bool {
	if name, mine := strings.CutPrefix(path, module+"/"); mine {
		return within(name, f.pkg) || matches(name, f.ours)
	}
	return standard || path == "C" || matches(path, f.others)
}

// within reports whether a package is another or below it.
func within(name, above string) bool {
	return name == above || strings.HasPrefix(name, above+"/")
}

func matches(name string, patterns []string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		above, tree := strings.CutSuffix(p, "...")
		return name == p || tree && (above == "" || within(name, strings.TrimSuffix(above, "/")))
	})
}

// TestFloorsForbid shows that the table can say no.
func TestFloorsForbid(t *testing.T) {
	const libp2p, pubsub = "github.com/libp2p/go-libp2p", "github.com/libp2p/go-libp2p-pubsub"
	tests := []struct {
		name, imported string
		standard, want bool
	}{
		{"ops", "context", true, true},
		{"ops", "peermesh/ops/tensor", false, true},
		{"ops", "peermesh/mesh", false, false},
		{"ops", libp2p + "/core/peer", false, false},
		{"ops/schedule", "peermesh/ops/tensor", false, false},
		{"ops/tensor", "golang.org/x/sys/cpu", false, true},
		{"ops/tensor", "golang.org/x/sys/unix", false, false},
		{"ops/tensor/tensortest", "peermesh/ops/tensor", false, true},
		{"node", libp2p, false, true},
		{"node", "peermesh/mesh", false, false},
		{"mesh", pubsub, false, true},
		{"mesh", libp2p + "/core/peer", false, true},
		{"mesh", libp2p, false, false},
		{"mesh", "peermesh/ops", false, false},
		{"gpu", "C", false, true},
		{"trainer/nn", "peermesh/trainer", false, true},
		{"trainer", "peermesh/ops/schedule", false, false},
		{"trainer", "peermesh/mesh", false, false},
		{"testnet", "peermesh/cmd/peer", false, false},
		{"testnet/memnet", "peermesh/ops", false, false},
		{"cmd/peer", "github.com/alecthomas/kong", false, true},
		{"examples/train", "peermesh/testnet", false, true},
	}
	for _, test := range tests {
		if got := floorOf(test.name).allows(test.imported, test.standard); got != test.want {
			t.Errorf("%s may import %s: %v, want %v", test.name, test.imported, got, test.want)
		}
	}
	if f := floorOf("operations"); f != nil {
		t.Errorf("operations is on the floor of %s", f.pkg)
	}
}

// TestFloorsTransitively looks at all that comes along with a package, however
// far below.
func TestFloorsTransitively(t *testing.T) {
	bans := []struct {
		pkg string
		ban []string
		why string
	}{
		{"ops", []string{"peermesh/mesh", "peermesh/node", "peermesh/gpu", "github.com/libp2p"},
			"collectives are tested, and embedded, without a network"},
		{"mesh", []string{"peermesh/ops", "peermesh/gpu", "peermesh/trainer"},
			"membership must not need to change when a collective does"},
		{"trainer/...", []string{"peermesh/mesh", "peermesh/node", "peermesh/gpu", "github.com/libp2p"},
			"a trainer meets the world as a Group"},
		{"testnet/...", []string{"peermesh/cmd", "peermesh/gpu"},
			"tests need no libc and no command"},
		{"ops/schedule", []string{"golang.org", "github.com"}, "standard library only"},
		{"testnet/memnet", []string{"golang.org", "github.com", "peermesh/ops"}, "standard library only"},
	}
	for _, b := range bans {
		for path, p := range list(t, "./"+b.pkg) {
			for _, dep := range p.Deps {
				if slices.ContainsFunc(b.ban, func(ban string) bool { return within(dep, ban) }) {
					t.Errorf("%s comes with %s, and may not: %s", path, dep, b.why)
				}
			}
		}
	}
}

// TestGPUIsOptional keeps purego, which makes a binary need libc, out of all
// programs but ours and the examples about GPUs.
func TestGPUIsOptional(t *testing.T) {
	for path, p := range list(t, "./...") {
		name := strings.TrimPrefix(path, module+"/")
		if within(name, "gpu") || within(name, "cmd/peer") || strings.HasPrefix(name, "examples/gpu") {
			continue
		}
		for _, dep := range p.Deps {
			if within(dep, module+"/gpu") || within(dep, "github.com/ebitengine/purego") {
				t.Errorf("%s comes with %s: only gpu, cmd/peer and the GPU examples may need libc", name, dep)
			}
		}
	}
}

// TestGossipIsConfined keeps pubsub to the one file that may lose messages.
func TestGossipIsConfined(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "..", "mesh", "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no files of mesh: %v", err)
	}
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, spec := range f.Imports {
			path, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			if name := filepath.Base(file); within(path, "github.com/libp2p/go-libp2p-pubsub") && name != "gossip.go" {
				t.Errorf("mesh/%s imports %s: gossip may drop, so only gossip.go may rely on it", name, path)
			}
		}
	}
}
