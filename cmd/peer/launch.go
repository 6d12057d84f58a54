package main

import (
	"context"
	"errors"
	"fmt"

	"peermesh/mesh"
	"peermesh/trainer/mnist"
)

// maxLocal bounds the children of one launcher.
const maxLocal = mesh.MaxWorld

// A launchCmd runs a whole world on this machine.
type launchCmd struct {
	Training  `embed:""`
	Num       int    `name:"num-processes" short:"n" required:"" placeholder:"N" help:"Local processes: the size of the world."`
	Transport string `default:"all" enum:"tcp,quic,shm,all" help:"tcp, quic, shm or all, which is shared memory where there is any."`
}

// Validate finds what cannot be launched. Kong calls it.
func (l *launchCmd) Validate() error {
	if l.Num < 1 || l.Num > maxLocal {
		return fmt.Errorf("--num-processes is %d, want 1 to %d", l.Num, maxLocal)
	}
	return l.Training.Validate()
}

// Run fetches the data once, and has a world of children train on it.
func (l *launchCmd) Run(p *process) error {
	l.abbreviated()
	setupLogging(&l.Common, l.Log)
	data, err := loadData(p.ctx, l.Data)
	if err != nil {
		return err
	}
	l.Data = data.Dir
	columns, _ := terminal(p.stdout)
	return launchRanks(p, "train", l.Num, l.Log == "json", func(rank int, key string) *brief {
		joining := Joining{World: l.Num, Identity: key, Listen: loopback(l.Transport)}
		training := l.Training
		if rank > 0 {
			training.HTTP, training.Pprof = "", false // one page shows all ranks
		}
		return &brief{Train: &trainCmd{Training: training, Joining: joining, Transport: l.Transport}, Columns: columns}
	})
}

// loadData reads the data set; a folder that someone named is theirs to mend.
func loadData(ctx context.Context, dir string) (*mnist.Data, error) {
	data, err := mnist.Load(ctx, mnist.Config{Dir: dir})
	if wrong, ok := errors.AsType[*mnist.DataError](err); ok {
		return nil, usagef("%w (--data names a folder with the four MNIST files)", wrong)
	}
	return data, cause(ctx, err)
}
