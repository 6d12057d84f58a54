package main

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"

	"peermesh/trainer/nn"
)

// The two networks, by their names on the command line.
const (
	netConvNet  = "convnet"
	netTutorial = "tutorial"
)

// globalBatch is the batch of all ranks together that both reference programs
// are written for; a rank takes its share unless --batch-size says otherwise.
const globalBatch = 128

// Training is what to train, and how: the flags that train and launch share.
// A pointer is nil where the default depends on the network or the world.
type Training struct {
	Net       string   `default:"convnet" enum:"convnet,tutorial" help:"Network and recipe: convnet (DDP, Adadelta) or tutorial (averaged gradients, SGD)."`
	Epochs    *int     `placeholder:"N" help:"Passes over the data (convnet: 1, tutorial: 10)."`
	Steps     int      `placeholder:"N" help:"End after this many steps (0: all)."`
	BatchSize *int     `placeholder:"N" help:"Samples a step of one rank (128 / world)."`
	Seed      *uint64  `placeholder:"N" help:"Seed of weights, order and dropout (convnet: 0, tutorial: 1234)."`
	LR        *float64 `name:"lr" placeholder:"RATE" help:"Learning rate (convnet: 0.5, tutorial: 0.01)."`
	NoDropout bool     `help:"Train without dropout, so that the world's size does not show in the loss."`
	Data      string   `placeholder:"DIR" help:"Folder of the four MNIST files ($$MNIST_DIR, else fetched once and kept)."`
	Threads   *int     `placeholder:"N" help:"Threads of one rank (cores / local ranks)."`

	Checkpointing `embed:""`
	Computing     `embed:""`
	Compression   `embed:""`
	Syncing       `embed:""`
	Log           string `default:"text" enum:"text,json" help:"Results on stdout as text or as JSON lines."`
	LogDir        string `placeholder:"DIR" help:"Rank 0 writes losses and accuracy here: metrics.csv, and event files for TensorBoard."`
	Watching      `embed:""`
	Insight       `embed:""`
	Common        `embed:""`
}

// Validate finds what no world could train with. Kong calls it.
func (t *Training) Validate() error {
	switch {
	case t.Epochs != nil && *t.Epochs < 1:
		return fmt.Errorf("--epochs is %d, want at least 1", *t.Epochs)
	case t.Steps < 0:
		return fmt.Errorf("--steps is %d, want 0 or more", t.Steps)
	case t.BatchSize != nil && (*t.BatchSize < 1 || *t.BatchSize > nn.MaxBatch):
		return fmt.Errorf("--batch-size is %d, want 1 to %d", *t.BatchSize, nn.MaxBatch)
	case t.LR != nil && !(*t.LR > 0 && *t.LR < math.Inf(1)): // so put, a NaN fails too
		return fmt.Errorf("--lr is %v, want a positive number", *t.LR)
	case t.Threads != nil && (*t.Threads < 1 || *t.Threads > nn.MaxThreads):
		return fmt.Errorf("--threads is %d, want 1 to %d", *t.Threads, nn.MaxThreads)
	}
	return errors.Join(t.Checkpointing.validate(t.Net), t.Computing.validate(), t.Compression.validate(t.Net), t.Watching.validate(), t.Syncing.validate(t.Net, &t.Compression), t.Common.Validate())
}

// defaultEvery is --every's default, as a number.
const defaultEvery = 200

// Checkpointing is how the state of a run is kept.
type Checkpointing struct {
	Checkpoint string `placeholder:"DIR" help:"Keep checkpoints in this folder, of each rank's own or shared by all."`
	Every      int    `default:"200" placeholder:"N" help:"Steps from one checkpoint to the next."`
	Keep       int    `default:"3" placeholder:"K" help:"Checkpoints that stay."`
	Resume     bool   `help:"Go on from the newest checkpoint, if there is one, with any number of ranks."`
	Measure    bool   `help:"Measure the links of each world before its first step, and price algorithms by what was found."`
}

func (c *Checkpointing) validate(net string) error {
	switch {
	case c.Every < 1:
		return fmt.Errorf("--every is %d, want at least 1", c.Every)
	case c.Keep < 1:
		return fmt.Errorf("--keep is %d, want at least 1", c.Keep)
	case c.Resume && c.Checkpoint == "":
		return errors.New("--resume is given without --checkpoint, the folder to resume from")
	case (c.Checkpoint != "" || c.Measure) && net == netTutorial:
		return errors.New("--checkpoint and --measure are for --net convnet")
	}
	return nil
}

// A plan is a Training with nothing left open.
type plan struct {
	world   int // ranks of the whole world
	net     string
	epochs  int
	steps   int // of all epochs together; 0: all
	batch   int
	seed    uint64
	lr      float64
	dropout bool
	threads int
	Compression
	Syncing
}

// global is how many samples all ranks together take in a step.
func (p plan) global() int { return p.batch * p.world }

// batches is how many batches of a size there are in n samples; the last may be short.
func batches(n, size int) int { return (n + size - 1) / size }

// plan decides for a world of this size, of whose ranks some run on this
// machine and share its cores.
func (t *Training) plan(world, local int) plan {
	p := plan{world: world, net: t.Net, epochs: 1, steps: t.Steps, batch: max(1, globalBatch/world), lr: 0.5,
		dropout: !t.NoDropout, threads: min(max(1, runtime.NumCPU()/local), nn.MaxThreads), Compression: t.Compression, Syncing: t.Syncing}
	if t.Net == netTutorial {
		p.epochs, p.seed, p.lr = 10, 1234, 0.01
	}
	set(&p.epochs, t.Epochs)
	set(&p.batch, t.BatchSize)
	set(&p.seed, t.Seed)
	set(&p.lr, t.LR)
	set(&p.threads, t.Threads)
	return p
}

// set overrides a default by a flag that was given.
func set[T any](to, from *T) {
	if from != nil {
		*to = *from
	}
}

// shared are the flags that every rank must be started with alike, as
// arguments; those that stand at their defaults are left out.
func (t *Training) shared() []string {
	var args []string
	add := func(given bool, flag string, value any) {
		if given {
			args = append(args, flag, fmt.Sprint(value))
		}
	}
	add(t.Mesh != defaultMesh, "--mesh", t.Mesh)
	add(t.Net != netConvNet, "--net", t.Net)
	add(t.Steps != 0, "--steps", t.Steps)
	addPointer(add, "--epochs", t.Epochs)
	addPointer(add, "--batch-size", t.BatchSize)
	addPointer(add, "--seed", t.Seed)
	addPointer(add, "--lr", t.LR)
	add(t.Checkpoint != "", "--checkpoint", t.Checkpoint)
	add(t.Checkpoint != "" && t.Every != defaultEvery, "--every", t.Every)
	add(t.onGPU(), "--device", deviceCUDA)
	add(t.compresses(), "--compress", t.Compress)
	add(t.local(), "--method", t.Method)
	add(t.SyncEvery != 0, "--sync-every", t.SyncEvery)
	add(t.LogDir != "", "--log-dir", t.LogDir)
	add(t.Trace != "", "--trace", t.Trace)
	addFlag := func(given bool, flag string) {
		if given {
			args = append(args, flag)
		}
	}
	addFlag(t.NoDropout, "--no-dropout")
	addFlag(t.Resume, "--resume")
	addFlag(t.Measure, "--measure")
	return args
}

// quoted is an argument as a shell takes it.
func quoted(arg string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:=+,@%", r)
	}
	if arg != "" && strings.TrimFunc(arg, plain) == "" {
		return arg
	}
	return "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
}

// commandLine is a command with its arguments, ready to paste.
func commandLine(args []string) string {
	for i := range args {
		args[i] = quoted(args[i])
	}
	return strings.Join(args, " ")
}

// addPointer adds a flag that is nil unless given.
func addPointer[T any](add func(bool, string, any), flag string, value *T) {
	if value != nil {
		add(true, flag, *value)
	}
}
