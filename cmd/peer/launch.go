package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"peermesh/trainer/mnist"
)

// maxLocal bounds the children of one launcher: a machine that is asked for more by
// mistake would not get out of it.
const maxLocal = 256

// A launchCmd runs a whole world on this machine.
type launchCmd struct {
	Training  `embed:""`
	Placement `embed:""`
	Num       int    `name:"num-processes" short:"n" required:"" placeholder:"N" help:"Processes of one machine, which on a single one is the size of the world."`
	Transport string `default:"all" enum:"tcp,quic,shm,all" help:"tcp, quic, shm or all, which is shared memory where there is any."`
}

// Validate finds what cannot be launched. Kong calls it.
func (l *launchCmd) Validate() error {
	if l.Num < 1 || l.Num > maxLocal {
		return fmt.Errorf("--num-processes is %d, want 1 to %d", l.Num, maxLocal)
	}
	if len(l.Command) > 0 && l.Command[0] != "--" && strings.HasPrefix(l.Command[0], "-") {
		return fmt.Errorf("unknown flag %s", l.Command[0]) // kong takes it for the trainer
	}
	return errors.Join(l.Placement.validate(l.Num), l.Training.Validate())
}

// Run fetches the data once, and has a world of children train on it.
func (l *launchCmd) Run(p *process) error {
	var err error
	if len(l.Command) > 0 && l.Command[0] == "--" { // where kong leaves it
		l.Command = l.Command[1:]
	}
	if l.Remote {
		if p, err = l.take(p, os.Stdin); err != nil {
			return err
		}
	}
	l.abbreviated()
	setupLogging(&l.Common, l.Log)
	if l.Machines != "" {
		return l.overSSH(p)
	}
	if err := l.settle(l.Num, os.Getenv); err != nil {
		return err
	}
	if len(l.Command) > 0 {
		return l.strangers(p)
	}
	return l.train(p)
}

// strangers are processes of another program, which find each other in a file or, on
// several machines, at the rendezvous.
func (l *launchCmd) strangers(p *process) error {
	if err := usable(l.Command); err != nil {
		return err
	}
	return l.ranks(p, func(rank int, key string, joining Joining) (*exec.Cmd, *brief) {
		cmd := exec.Command(l.Command[0], l.Command[1:]...)
		cmd.Env = l.strangerEnv(rank, key, joining.Bootstrap[0], joining.Listen)
		return cmd, nil
	})
}

// train has children train with this program's own trainer.
func (l *launchCmd) train(p *process) error {
	data, err := loadData(p.ctx, l.Data)
	if err != nil {
		return err
	}
	l.Data = data.Dir
	share, err := l.Computing.shares()
	if err != nil {
		return err
	}
	columns, _ := terminal(p.stdout)
	return l.ranks(p, func(rank int, key string, joining Joining) (*exec.Cmd, *brief) {
		training := l.Training
		training.Device = share(rank)
		if rank > 0 {
			training.HTTP, training.Pprof = "", false // one page shows all ranks
		}
		return ownChild("train"), &brief{Train: &trainCmd{Training: training, Joining: joining, Transport: l.Transport, Min: l.Min}, Columns: columns}
	})
}

// ranks starts what child makes of each rank and its way to the others.
func (l *launchCmd) ranks(p *process, child func(rank int, key string, joining Joining) (*exec.Cmd, *brief)) error {
	r := ranks{n: l.Num, raw: l.Log == "json" && len(l.Command) == 0 && l.first == 0, place: l.Placement, met: l.meets()}
	r.child = func(rank int, key string) (*exec.Cmd, *brief) {
		joining := Joining{World: l.world, Identity: key, DHT: l.DHT}
		if l.NumMachines == 1 {
			joining.Listen = loopback(l.Transport)
		}
		switch meet := l.Rendezvous; {
		case meet != "":
			joining.Bootstrap = []string{meet}
			// Our own trainers on several machines see to it themselves that one of them
			// listens there: see entrant.listen.
			alone := l.NumMachines == 1 || len(l.Command) > 0
			if alone && l.first+rank == 0 {
				if place := meetingPlace(p.ctx, joining.Bootstrap, l.Transport); place != nil {
					joining.Listen = place
				}
			}
		case r.met:
			joining.Bootstrap = []string{"file://" + filepath.Join(filepath.Dir(key), "meet")}
		}
		return child(rank, key, joining)
	}
	return r.launch(p)
}

// loadData reads the data set; a folder that someone named is theirs to mend.
func loadData(ctx context.Context, dir string) (*mnist.Data, error) {
	data, err := mnist.Load(ctx, mnist.Config{Dir: dir})
	if wrong, ok := errors.AsType[*mnist.DataError](err); ok {
		return nil, usagef("%w (--data names a folder with the four MNIST files)", wrong)
	}
	return data, cause(ctx, err)
}
