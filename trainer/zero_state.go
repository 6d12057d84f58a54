package trainer

import (
	"fmt"
	"strings"

	"peermesh/ops/tensor"
)

// State is this rank's share of the optimiser's, which depends on the rank and the
// number of ranks. To save, use FullState.
func (z *ZeRO) State() []*Param { return z.Optimizer.State() }

// FullState gathers the state that one optimiser of all parameters would have, on
// every rank: same names, types and shapes, so a run without ZeRO, or with another
// number of ranks, can go on from it. It is a copy. Every rank calls it, at the same
// place among the group's operations.
func (z *ZeRO) FullState() ([]*Param, error) {
	var full []*Param
	for _, s := range z.Optimizer.State() {
		i, shared := z.sharedBy(s)
		if !shared {
			whole := tensor.New(s.Value.DType(), s.Value.Shape()...)
			if err := tensor.Copy(whole, s.Value); err != nil {
				return nil, fmt.Errorf("trainer: ZeRO: %q: %w", s.Name, err)
			}
			full = append(full, &Param{Name: s.Name, Value: whole})
			continue
		}
		whole := tensor.New(s.Value.DType(), z.params[i].Value.Shape()...)
		parts := make([]tensor.Tensor, z.g.Size())
		for rank := range parts {
			parts[rank] = whole.Slice(z.piece(i, rank))
		}
		if err := z.g.AllGatherList(z.ctx, parts, s.Value).Wait(); err != nil {
			return nil, fmt.Errorf("trainer: ZeRO: gathering %q: %w", s.Name, err)
		}
		full = append(full, &Param{Name: s.Name, Value: whole})
	}
	return full, nil
}

// LoadFullState takes this rank's share of what FullState, or the State of an
// optimiser of all parameters, has. It speaks to no other rank.
func (z *ZeRO) LoadFullState(full []*Param) error {
	from := make(map[string]*Param, len(full))
	for _, p := range full {
		from[p.Name] = p
	}
	var share []*Param
	for _, s := range z.Optimizer.State() {
		p := from[s.Name]
		if p == nil {
			return fmt.Errorf("trainer: ZeRO: %q is missing", s.Name)
		}
		i, shared := z.sharedBy(s)
		if !shared {
			share = append(share, p)
			continue
		}
		if p.Value.Len() != z.params[i].Value.Len() {
			return fmt.Errorf("trainer: ZeRO: %q is %v, of a parameter that is %v", p.Name, p.Value, z.params[i].Value)
		}
		share = append(share, &Param{Name: p.Name, Value: p.Value.Slice(z.piece(i, z.g.Rank()))})
	}
	return LoadState(z.Optimizer.State(), share)
}

// sharedBy is the parameter of which a tensor of the state has a value for each
// element, if there is one. Names are PARAMETER.what, and what has no dots.
func (z *ZeRO) sharedBy(s *Param) (int, bool) {
	dot := strings.LastIndexByte(s.Name, '.')
	if dot < 0 || s.Name[dot:] == ".step" {
		return 0, false
	}
	for i, p := range z.params {
		if p.Name == s.Name[:dot] {
			return i, true
		}
	}
	return 0, false
}
