package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/ipfs/go-log/v2"

	"peermesh/testnet/planet"
	"peermesh/testnet/scenario"
)

// maxScenario bounds what is read of a scenario file, in bytes.
const maxScenario = 4 << 20

// A simCmd plays a scenario: real nodes on modelled links, in virtual time.
type simCmd struct {
	File  string  `arg:"" optional:"" placeholder:"FILE" help:"The scenario: nodes, links, rounds and faults, as text."`
	Seed  *uint64 `placeholder:"N" help:"Another seed than the scenario's, for identities, jitter and loss."`
	Trace string  `placeholder:"FILE" help:"Write a timeline of it, which ui.perfetto.dev and Chrome's about:tracing show."`
	planetFlags
}

// Validate wants either a scenario or a number of ranks.
func (s *simCmd) Validate() error {
	switch {
	case s.Ranks < 0 || s.Ranks > planet.MaxRanks:
		return fmt.Errorf("--ranks is %d, want 1 to %d", s.Ranks, planet.MaxRanks)
	case s.Ranks > 0 && (s.File != "" || s.Seed != nil || s.Trace != ""):
		return errors.New("--ranks goes with --regions and nothing else")
	case s.Ranks == 0 && s.Regions != "":
		return errors.New("--regions goes with --ranks")
	case s.Ranks == 0 && s.File == "":
		return errors.New("want the FILE of a scenario, or --ranks")
	}
	return nil
}

// Run plays the scenario and prints what happened to whom, the rounds, and the
// messages and bytes of each link. That a run ends badly because of its faults is no
// error: it is what one wants to see.
func (s *simCmd) Run(p *process) error {
	if s.Ranks > 0 {
		return s.planet(p)
	}
	plan, err := s.read()
	if err != nil {
		return err
	}
	if s.Seed != nil {
		plan.Seed = *s.Seed
	}
	log.SetLogLevel("swarm2", "fatal") // it calls a killed host's listener an error
	report, err := scenario.Run(p.ctx, plan)
	if err != nil {
		if p.ctx.Err() != nil {
			return context.Cause(p.ctx)
		}
		return fmt.Errorf("peer: %s: %w", s.File, err)
	}
	if s.Trace != "" {
		if err := replaceFile(s.Trace, report.WriteTrace); err != nil {
			return usagef("peer: --trace %s: %w", s.Trace, err)
		}
	}
	_, err = fmt.Fprintf(p.stdout, "%s: %d nodes, %d faults, seed %d\n%v",
		cmp.Or(plan.Name, s.File), plan.Nodes, len(plan.Faults), plan.Seed, report)
	return err
}

// read reads the scenario. What is wrong with it is said with file and line, as
// compilers do.
func (s *simCmd) read() (*scenario.Scenario, error) {
	text, err := readFile(s.File, maxScenario)
	if err != nil {
		return nil, usagef("peer: %w", err)
	}
	plan, err := scenario.Parse(string(text))
	var syntax *scenario.SyntaxError
	switch {
	case errors.As(err, &syntax) && syntax.Line > 0:
		return nil, usagef("peer: %s:%d: %w", s.File, syntax.Line, syntax.Err)
	case errors.As(err, &syntax):
		return nil, usagef("peer: %s: %w", s.File, syntax.Err)
	}
	return plan, err
}
