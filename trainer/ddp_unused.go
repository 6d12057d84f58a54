package trainer

import (
	"fmt"
	"slices"
	"strings"

	"peermesh/ops/tensor"
)

// An unusedSet is what is known of parameters that take no part in the loss.
type unusedSet struct {
	local  []bool // of this rank's last step with samples
	global []bool // of all ranks' last step
	known  bool   // this rank has had a step with samples

	settled bool                  // the graph is static and all ranks know theirs
	before  map[int]tensor.Tensor // gradients that were overwritten with zeros, by parameter
}

func (u *unusedSet) init(n int) { u.local, u.global = make([]bool, n), make([]bool, n) }

// Unused are the parameters, by index, that took no part on any rank in the last
// step, where FindUnused or Static allows it. Their gradients are what they were
// before, or zeros with both Static and Views. An optimiser would move along
// these again: see that it does not.
func (d *DDP) Unused() []int {
	var all []int
	for i, u := range d.unused.global {
		if u {
			all = append(all, i)
		}
	}
	return all
}

// fillUnused completes the buckets for gradients that did not become ready, if
// that is allowed.
func (d *DDP) fillUnused() error {
	var missing []int
	for i := len(d.params) - 1; i >= 0; i-- {
		if d.at[i].bucket >= 0 && !d.seen[i] && !d.absent(i) {
			missing = append(missing, i)
		}
	}
	if len(missing) > 0 && (!d.c.FindUnused && !d.c.Static || d.unused.settled) {
		slices.Reverse(missing)
		var names []string
		for _, i := range missing {
			names = append(names, d.params[i].Name)
		}
		why := "every parameter must take part in the loss, or DDPConfig.FindUnused be set"
		if d.unused.settled {
			why = "they took part in the first step, so the graph is not static"
		}
		return fmt.Errorf("trainer: no gradient was ready in this step for %s: %s", strings.Join(names, ", "), why)
	}
	d.unused.before = nil
	for _, i := range missing {
		if d.held[i].Memory() != nil { // it did in a step that sent nothing
			copyElements(d.params[i].Grad, d.held[i])
			d.seen[i] = true
			d.fill(i)
			continue
		}
		d.fillZero(i)
	}
	d.launchReady() // a bucket of nothing but absent ones has no Ready to wait for
	return d.err
}

// absent reports whether a parameter is known to take no part on this rank.
func (d *DDP) absent(i int) bool {
	return d.unused.settled && d.unused.local[i] && d.at[i].bucket >= 0
}

// fillZero puts zeros in the place of a gradient.
func (d *DDP) fillZero(i int) {
	if d.c.Views {
		if d.unused.before == nil {
			d.unused.before = make(map[int]tensor.Tensor)
		}
		d.unused.before[i] = clone(d.params[i].Grad)
	}
	old := d.params[i].Grad
	if !d.c.Views {
		d.params[i].Grad = tensor.New(old.DType(), old.Shape()...)
	}
	zero(d.params[i].Grad)
	d.fill(i)
	d.params[i].Grad = old
}

// agreeUnused finds what no rank has used, and puts those gradients back.
func (d *DDP) agreeUnused() error {
	if !d.c.FindUnused && !d.c.Static || d.unused.settled {
		return nil
	}
	u := &d.unused
	if !d.idle {
		u.known = true
		for i := range u.local {
			u.local[i] = d.at[i].bucket >= 0 && !d.seen[i]
		}
	}
	used := make([]bool, len(d.params)+1) // and whether somebody does not know its graph yet
	for i := range d.params {
		used[i] = !d.idle && d.seen[i]
	}
	used[len(d.params)] = !u.known
	if err := d.g.AllReduce(d.ctx, tensor.Of(used), tensor.Max).Wait(); err != nil {
		return fmt.Errorf("trainer: agreeing on unused parameters: %w", err)
	}
	for i := range d.params {
		u.global[i] = d.at[i].bucket >= 0 && !used[i]
		if old, ok := u.before[i]; ok && u.global[i] {
			copyElements(d.params[i].Grad, old)
		}
	}
	u.settled = d.c.Static && !used[len(d.params)]
	return nil
}
