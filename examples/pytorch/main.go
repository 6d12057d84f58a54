package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"syscall"

	"peermesh/examples/internal/ranks"
	"peermesh/mesh"
	"peermesh/node"
	"peermesh/ops"
	"peermesh/trainer/mnist"
)

// A job is a program and where its ranks run.
type job struct {
	local     int    // ranks on this machine, all of them; or, if zero,
	world     int    // ranks, of which one is here
	bootstrap string // of those, the first peer
	program   []string
}

func main() {
	log.SetFlags(0)
	log.SetPrefix("pytorch: ")
	var j job
	flag.IntVar(&j.local, "n", 0, "ranks on this machine, and no others")
	flag.IntVar(&j.world, "world", 0, "ranks on machines of their own, this one included")
	flag.StringVar(&j.bootstrap, "bootstrap", "", "with -world: multiaddr of the first rank, for the others")
	digits := flag.Bool("mnist", false, "fetch MNIST, and give the program its folder in $MNIST_DIR")
	flag.Parse()
	j.program = flag.Args()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if *digits {
		data, err := mnist.Load(ctx, mnist.Config{})
		if err == nil {
			err = os.Setenv("MNIST_DIR", data.Dir)
		}
		if err != nil {
			log.Fatal(err)
		}
	}
	if err := j.run(ctx); err != nil {
		log.Fatal(err)
	}
}

// run runs the ranks that are here.
func (j job) run(ctx context.Context) error {
	switch {
	case len(j.program) == 0:
		return errors.New("no program: pytorch -n 2 -- python3 train.py")
	case (j.local > 0) == (j.world > 0):
		return errors.New("want either -n, for all ranks here, or -world, for one of them")
	}
	out := &console{w: os.Stdout}
	each := func(ctx context.Context, g *ops.Group) error {
		s := &speaker{to: out, prefix: fmt.Sprintf("[%d] ", g.Rank())}
		err := run(ctx, g, s, j.program[0], j.program[1:]...)
		return errors.Join(err, s.Close())
	}
	if j.local > 0 {
		if err := shareThreads(j.local); err != nil {
			return err
		}
		return ranks.Run(ctx, j.local, each)
	}
	return j.join(ctx, each)
}

// shareThreads has programs of one machine share its processors: PyTorch would give each
// all of them.
func shareThreads(n int) error {
	const name = "OMP_NUM_THREADS"
	if _, set := os.LookupEnv(name); set {
		return nil
	}
	return os.Setenv(name, strconv.Itoa(max(1, runtime.NumCPU()/n)))
}

// join is one rank of a world on several machines.
func (j job) join(ctx context.Context, each func(context.Context, *ops.Group) error) error {
	n, err := node.Start(ctx, node.Config{})
	if err != nil {
		return err
	}
	defer n.Close()
	c := mesh.Config{Name: "pytorch", World: j.world}
	if j.bootstrap != "" {
		c.Bootstrap = []string{j.bootstrap}
	} else {
		fmt.Printf("now start: go run ./examples/pytorch -world %d -bootstrap %s -- PROGRAM\n", j.world, n.Addrs()[0])
	}
	m, err := mesh.Join(ctx, n, c)
	if err != nil {
		return err
	}
	defer m.Close()
	w, err := m.World(ctx)
	if err != nil {
		return err
	}
	if err := ranks.In(ctx, w, each); err != nil {
		return err
	}
	return m.Leave(ctx)
}
