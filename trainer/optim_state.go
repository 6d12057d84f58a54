package trainer

import (
	"fmt"

	"peermesh/ops/tensor"
)

// State lists what a step depends on; see Optimizer.
func (g *groups) State() []*Param {
	var state []*Param
	add := func(name string, value tensor.Tensor) {
		state = append(state, &Param{Name: name, Value: value})
	}
	for _, n := range g.all {
		for j, name := range n.names {
			add(name+".step", tensor.Of(n.steps[j:j+1]))
			for k, slot := range n.slots {
				if slot != "" {
					add(name+"."+slot, n.memory[j][k])
				}
			}
		}
	}
	add("lr", tensor.Of(g.rates))
	if len(g.momenta) != 0 {
		add("momentum", tensor.Of(g.momenta))
	}
	return state
}

// LoadState copies values into the tensors of dst, which may be an optimiser's
// state, a schedule's, a model's parameters or all of them, from those of the
// same names in src. Each must be there once, of the same type and shape; src
// may hold more. On an error nothing has been copied, save where memory failed.
//
// The parameters' names are what tells one from the other, so they must differ.
func LoadState(dst, src []*Param) error {
	from := make(map[string]*Param, len(src))
	for _, p := range src {
		if from[p.Name] != nil {
			return fmt.Errorf("trainer: load state: %q is given twice", p.Name)
		}
		from[p.Name] = p
	}
	seen := make(map[string]bool, len(dst))
	for _, p := range dst {
		s := from[p.Name]
		switch {
		case seen[p.Name]:
			return fmt.Errorf("trainer: load state: two tensors are named %q", p.Name)
		case s == nil:
			return fmt.Errorf("trainer: load state: %q is missing", p.Name)
		case s.Value.String() != p.Value.String(): // type and shape
			return fmt.Errorf("trainer: load state: %q is %v, want %v", p.Name, s.Value, p.Value)
		}
		seen[p.Name] = true
	}
	for _, p := range dst {
		if err := tensor.Copy(p.Value, from[p.Name].Value); err != nil {
			return fmt.Errorf("trainer: load state: %q: %w", p.Name, err)
		}
	}
	return nil
}
