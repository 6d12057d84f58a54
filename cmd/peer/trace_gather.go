package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"peermesh/ops"
	"peermesh/ops/flight"
	"peermesh/ops/tensor"
)

const (
	// clockTag is of the messages by which clocks are compared.
	clockTag = 0xc10c
	// clockRounds is how often rank 0 is asked the time: the answer that came
	// soonest counts.
	clockRounds = 5
)

// compare measures by how much this rank's clock differs from rank 0's, as NTP does: an
// answer is taken to be of the middle of the time that it took. All ranks call it. The
// error is up to half of the round trip, and where both ways take as long it is little.
func (t *timeline) compare(ctx context.Context, g *ops.Group) error {
	if t == nil {
		return nil
	}
	if g.Rank() == 0 {
		return t.tellTime(ctx, g)
	}
	offset, best := time.Duration(0), time.Duration(-1)
	for range clockRounds {
		asked := t.clock()
		theirs := make([]int64, 1)
		if err := g.Send(ctx, tensor.Of([]int64{asked.UnixNano()}), 0, clockTag); err != nil {
			return fmt.Errorf("comparing clocks: %w", err)
		}
		if err := g.Recv(ctx, tensor.Of(theirs), 0, clockTag); err != nil {
			return fmt.Errorf("comparing clocks: %w", err)
		}
		if took := t.clock().Sub(asked); best < 0 || took < best {
			best, offset = took, time.Duration(theirs[0]-asked.Add(took/2).UnixNano())
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.offset = offset
	return nil
}

// tellTime answers all others at once.
func (t *timeline) tellTime(ctx context.Context, g *ops.Group) error {
	errs := make([]error, g.Size())
	var all sync.WaitGroup
	for rank := 1; rank < g.Size(); rank++ {
		all.Go(func() {
			for i := 0; i < clockRounds && errs[rank] == nil; i++ {
				if errs[rank] = g.Recv(ctx, tensor.Of(make([]int64, 1)), rank, clockTag); errs[rank] == nil {
					errs[rank] = g.Send(ctx, tensor.Of([]int64{t.clock().UnixNano()}), rank, clockTag)
				}
			}
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("comparing clocks: %w", err)
	}
	return nil
}

// A part is one rank's part of a timeline, by rank 0's clock.
type part struct {
	Rank  int
	Spans []span
}

// part is what this rank has.
func (t *timeline) part() part {
	records := t.Records()
	t.mu.Lock()
	defer t.mu.Unlock()
	p := part{Rank: t.rank, Spans: slices.Clone(t.spans)}
	for i := range records {
		if s, ok := spanOf(&records[i]); ok {
			p.Spans = append(p.Spans, s)
		}
	}
	for i := range p.Spans {
		p.Spans[i].From += int64(t.offset)
		p.Spans[i].To += int64(t.offset)
	}
	return p
}

// spanOf is an operation as a span, if it has been at work. What it waited for before is
// noted: operations of one group take turns.
func spanOf(r *flight.Record) (s span, ok bool) {
	if r.Started == 0 || r.Ended == 0 {
		return s, false
	}
	s = span{Track: "collectives", Name: r.Call, From: r.Started, To: r.Ended}
	switch {
	case r.Kind == ops.KindSend.String():
		s.Track = "messages"
	case r.Group != 0:
		s.Track = fmt.Sprintf("collectives of group %08x", r.Group)
	}
	var notes []string
	note := func(given bool, format string, a ...any) {
		if given {
			notes = append(notes, fmt.Sprintf(format, a...))
		}
	}
	note(r.Algorithm != "", "%s", r.Algorithm)
	note(r.Bytes > 0, "%d bytes", r.Bytes)
	note(r.Started > r.Begun, "queued for %v", time.Duration(r.Started-r.Begun))
	note(r.State == flight.Failed, "failed: %s", r.Error)
	s.Note = strings.Join(notes, ", ")
	return s, true
}

// gather brings all ranks' parts to rank 0, which writes them. All ranks call it, when
// the run is over.
func (t *timeline) gather(ctx context.Context, g *ops.Group) error {
	if t == nil {
		return nil
	}
	parts, err := ops.GatherObject(ctx, g, t.part(), 0)
	if err != nil {
		return fmt.Errorf("gathering the timeline: %w", err)
	}
	t.mu.Lock()
	t.whole = true
	t.mu.Unlock()
	if g.Rank() != 0 {
		return nil
	}
	return t.write(t.path, parts)
}

// salvage writes this rank's part alone, beside the file that was to have them all, if
// the run has ended before they were gathered.
func (t *timeline) salvage() error {
	t.mu.Lock()
	whole := t.whole
	t.mu.Unlock()
	p := t.part()
	if whole || len(p.Spans) == 0 {
		return nil
	}
	ext := filepath.Ext(t.path)
	return t.write(fmt.Sprintf("%s.%d%s", strings.TrimSuffix(t.path, ext), p.Rank, ext), []part{p})
}
