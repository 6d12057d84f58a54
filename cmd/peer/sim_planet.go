package main

import (
	"fmt"
	"io"
	"time"

	"peermesh/internal/bytesize"
	"peermesh/testnet/planet"
)

// maxMap bounds what is read of a map of regions, in bytes.
const maxMap = 1 << 20

// playedBytes is the vector of the schedules that are played.
const playedBytes = 1 << 20

// playedMoves bounds what is played here: a second or so each.
const playedMoves = 1 << 20

// planetFlags are for worlds that are too large to be run: they are priced.
type planetFlags struct {
	Ranks   int    `placeholder:"N" help:"Rather than play a scenario, price all_reduces among so many ranks in regions, and play those that fit."`
	Regions string `placeholder:"FILE" help:"With --ranks: the regions and how far they are, as text. Without, eight regions of a public cloud."`
}

// planet prices every way to all_reduce, and plays those that fit.
func (s *simCmd) planet(p *process) error {
	m := planet.Earth()
	if s.Regions != "" {
		var err error
		if m, err = readMap(s.Regions); err != nil {
			return err
		}
	}
	w := m.World(s.Ranks)
	fmt.Fprintf(p.stdout, "all_reduce among %d ranks in %d regions, %.0f MB/s a port each way\n\n", w.Ranks, len(w.Regions), m.Rate/1e6)
	t := planet.NewTable(w, planet.Sizes)
	if err := t.Write(p.stdout); err != nil {
		return fmt.Errorf("peer: %w", err)
	}
	fmt.Fprintf(p.stdout, "\n%s, message by message:\n", bytesize.Text(playedBytes))
	for _, c := range t.Contenders {
		if p.ctx.Err() != nil {
			return p.ctx.Err()
		}
		if err := playPlan(p.stdout, w, c); err != nil {
			return fmt.Errorf("peer: %w", err)
		}
	}
	return nil
}

// playPlan carries one schedule out, if it is not too large.
func playPlan(out io.Writer, w *planet.World, c planet.Contender) error {
	plan := c.Plan(playedBytes)
	if plan.Moves > playedMoves {
		_, err := fmt.Fprintf(out, "  %-22s %d moves: priced only\n", c.Name, plan.Moves)
		return err
	}
	took, err := plan.Play(playedBytes, w)
	if err != nil {
		return err
	}
	price := c.Price(playedBytes)
	_, err = fmt.Fprintf(out, "  %-22s %d moves: priced at %v, took %v\n", c.Name, plan.Moves,
		price.Round(time.Microsecond), took.Round(time.Microsecond))
	return err
}

func readMap(path string) (*planet.Map, error) {
	text, err := readFile(path, maxMap+1)
	if err != nil {
		return nil, usagef("peer: %w", err)
	}
	m, err := planet.Parse(string(text))
	if err != nil {
		return nil, usagef("peer: %s: %w", path, err)
	}
	return m, nil
}
