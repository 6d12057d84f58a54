package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"sync/atomic"

	"peermesh/mesh"
	"peermesh/trainer/mnist"
)

// maxLocal bounds the children of one launcher.
const maxLocal = mesh.MaxWorld

// A launchCmd runs a whole world on this machine.
type launchCmd struct {
	Training  `embed:""`
	Num       int    `name:"num-processes" short:"n" required:"" placeholder:"N" help:"Local processes: the size of the world."`
	Transport string `default:"tcp" enum:"tcp,quic,all" help:"tcp, quic or all."`
}

// Validate finds what cannot be launched. Kong calls it.
func (l *launchCmd) Validate() error {
	if l.Num < 1 || l.Num > maxLocal {
		return fmt.Errorf("--num-processes is %d, want 1 to %d", l.Num, maxLocal)
	}
	return l.Training.Validate()
}

// Run fetches the data once, starts the children, introduces them to each
// other and stays until the last of them has ended.
func (l *launchCmd) Run(p *process) error {
	// On Linux the children are killed when the thread that started them ends.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	setupLogging(&l.Training)
	data, err := loadData(p.ctx, l.Data)
	if err != nil {
		return err
	}
	l.Data = data.Dir
	keys, err := newIdentities(l.Num)
	if err != nil {
		return err
	}
	defer func() {
		if err := keys.remove(); err != nil {
			fmt.Fprintf(p.stderr, "peer: the keys were not removed: %v\n", err)
		}
	}()

	// When not all can be started, those that run are ended like after a signal.
	ctx, cancel := context.WithCancelCause(p.ctx)
	defer cancel(nil)
	launch, err := l.start(ctx, p, keys)
	if err != nil {
		cancel(err)
	}
	return launch.wait(ctx)
}

// A launch is the running children and the launcher's ends of their pipes.
type launch struct {
	crew
	tethers []*os.File // to each child; open as long as the launcher lives
	report  *os.File   // from the first
	outputs []io.Closer

	introducing sync.WaitGroup
	introduced  atomic.Bool // the first child has reported
	failed      error       // of the introduction
}

// start starts every child. Those that run when it fails are in the launch all
// the same.
func (l *launchCmd) start(ctx context.Context, p *process, keys *identities) (*launch, error) {
	r := new(launch)
	r.onFailure = r.abandon
	exe, err := os.Executable()
	if err != nil {
		return r, err
	}
	con := new(console)
	for rank := range l.Num {
		cmd := exec.Command(exe, "train", "--launched")
		r.attach(cmd, con, p, rank, l.Log)
		if err := r.begin(cmd, l.brief(rank, keys, p)); err != nil {
			return r, err
		}
	}
	r.introducing.Go(func() { r.failed = r.introduce() })
	return r, nil
}

// brief is what the child of a rank is told.
func (l *launchCmd) brief(rank int, keys *identities, p *process) *brief {
	b := &brief{First: rank == 0, Local: l.Num}
	b.Train = trainCmd{Training: l.Training, World: l.Num, Transport: l.Transport,
		Identity: keys.paths[rank], Listen: loopback(l.Transport)}
	b.Columns, _ = terminal(p.stdout)
	return b
}

// attach gives a child its way to the console. JSON stays as it is, without a
// prefix, and is passed on of rank 0 only: every rank says the same.
func (r *launch) attach(cmd *exec.Cmd, con *console, p *process, rank int, format string) {
	_, bars := terminal(p.stdout)
	prefix := rankPrefix(p.stdout, rank)
	if format == "json" {
		prefix, bars = "", false
	}
	out := con.writer(p.stdout, prefix, bars)
	if format == "json" && rank > 0 {
		out = con.writer(io.Discard, "", false)
	}
	errs := con.writer(p.stderr, rankPrefix(p.stderr, rank), false)
	cmd.Stdout, cmd.Stderr = out, errs
	r.outputs = append(r.outputs, out, errs)
}

// begin starts a child with its pipes and hands it its brief.
func (r *launch) begin(cmd *exec.Cmd, b *brief) error {
	// The child's ends are closed here once it has them: a pipe ends when its last
	// writer is gone, and that must be the process at the other end.
	childEnd, tether, err := os.Pipe()
	if err != nil {
		return err
	}
	defer childEnd.Close()
	r.tethers = append(r.tethers, tether)
	cmd.ExtraFiles = []*os.File{childEnd}
	if b.First {
		report, write, err := os.Pipe()
		if err != nil {
			return err
		}
		defer write.Close()
		r.report = report
		cmd.ExtraFiles = append(cmd.ExtraFiles, write)
	}
	if err := r.enlist(cmd); err != nil {
		return err
	}
	logger.Debugf("rank %d is process %d", len(r.children)-1, cmd.Process.Pid)
	return sendLine(tether, b)
}

// introduce passes the first child's addresses on to the others.
func (r *launch) introduce() error {
	var addrs []string
	if err := json.NewDecoder(r.report).Decode(&addrs); err != nil {
		return fmt.Errorf("rank 0 has not reported its addresses: %w", err)
	}
	r.introduced.Store(true)
	for _, t := range r.tethers[1:] {
		if err := sendLine(t, addrs); err != nil {
			return err
		}
	}
	return nil
}

// abandon ends children that have not met: no mesh will tell them that one of
// them has failed. Those that have met learn it from each other, with the reason.
func (r *launch) abandon() {
	if !r.introduced.Load() {
		closeAll(r.tethers...)
	}
}

// wait returns when all children have ended and their last output is out.
func (r *launch) wait(ctx context.Context) error {
	err := r.crew.wait(ctx)
	closeAll(append(r.tethers, r.report)...)
	r.introducing.Wait()
	if err == nil {
		err = r.failed
	}
	for _, o := range r.outputs {
		err = errors.Join(err, o.Close())
	}
	return err
}

// loadData reads the data set; a folder that someone named is theirs to mend.
func loadData(ctx context.Context, dir string) (*mnist.Data, error) {
	data, err := mnist.Load(ctx, mnist.Config{Dir: dir})
	if wrong, ok := errors.AsType[*mnist.DataError](err); ok {
		return nil, usagef("%w (--data names a folder with the four MNIST files)", wrong)
	}
	return data, cause(ctx, err)
}

// loopback is where a launched rank listens.
func loopback(transport string) []string {
	tcp, quic := "/ip4/127.0.0.1/tcp/0", "/ip4/127.0.0.1/udp/0/quic-v1"
	switch transport {
	case "tcp":
		return []string{tcp}
	case "quic":
		return []string{quic}
	}
	return []string{tcp, quic}
}
