package main

import (
	"context"
	"errors"

	"peermesh/mesh"
	"peermesh/trainer"
)

// worlds gives a trainer the worlds of a mesh, one after the other; or only the
// first, if its end is to be the run's.
type worlds struct {
	mesh    *mesh.Mesh
	elastic bool
	taken   func(w *mesh.World, why error) error // told of each, and why the one before ended
	over    func() error                         // why there is no point in another
	last    *mesh.World
	trace   *timeline // nil: none
}

var _ trainer.Worlds = (*worlds)(nil)

// Next waits for the next world.
func (s *worlds) Next(ctx context.Context) (trainer.World, error) {
	var why error
	if err := s.over(); err != nil {
		return nil, err
	}
	if s.last != nil {
		if why = context.Cause(s.last.Context()); !s.elastic {
			return nil, why
		}
	}
	w, err := s.mesh.World(ctx)
	if err != nil {
		return nil, cause(ctx, err)
	}
	s.last = w
	if err := s.taken(w, why); err != nil {
		w.End(err)
		return nil, err
	}
	return s.trace.over(world{w, s.mesh}), nil
}

// A world is one of them.
type world struct {
	*mesh.World
	mesh *mesh.Mesh
}

// Newcomers is the reason to end the world for, if somebody waits to be let in.
func (w world) Newcomers() error {
	if len(w.mesh.Waiting()) > 0 {
		return mesh.ErrGrow
	}
	return nil
}

// fault is whom an ended world's end is laid to; −1 if that is nobody.
func fault(err error) (rank int, peer string) {
	if ended, ok := errors.AsType[*mesh.EndedError](err); ok && !errors.Is(err, mesh.ErrGrow) {
		return ended.Rank, ended.Peer.String()
	}
	return -1, ""
}
