package scenario

import (
	"bufio"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"peermesh/testnet/simlink"
)

// A SyntaxError names the line of a scenario that cannot be read.
type SyntaxError struct {
	Line int // from 1; 0 is the text as a whole
	Err  error
}

func (e *SyntaxError) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("scenario: %v", e.Err)
	}
	return fmt.Sprintf("scenario: line %d: %v", e.Line, e.Err)
}

func (e *SyntaxError) Unwrap() error { return e.Err }

// Parse reads a scenario. An error is a *SyntaxError.
func Parse(text string) (*Scenario, error) {
	if len(text) > maxText {
		return nil, &SyntaxError{0, fmt.Errorf("%d bytes: want at most %d", len(text), maxText)}
	}
	s := &Scenario{Rounds: 1, Bytes: 1 << 20}
	lines := bufio.NewScanner(strings.NewReader(text))
	lines.Buffer(nil, maxText+1)
	for n := 1; lines.Scan(); n++ {
		line, _, _ := strings.Cut(lines.Text(), "#")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		if err := s.line(words); err != nil {
			return nil, &SyntaxError{n, err}
		}
	}
	if s.Nodes == 0 {
		return nil, &SyntaxError{0, errors.New("no line says how many nodes there are")}
	}
	if s.Min > s.Nodes {
		return nil, &SyntaxError{0, fmt.Errorf("at least %d of %d nodes", s.Min, s.Nodes)}
	}
	return s, nil
}

// line reads one statement.
func (s *Scenario) line(words []string) error {
	verb, args := words[0], words[1:]
	if s.Nodes == 0 && verb != "nodes" && verb != "name" && verb != "seed" {
		return fmt.Errorf("%q before the line that says how many nodes there are", verb)
	}
	switch verb {
	case "name":
		return one(args, func(w string) (err error) { s.Name, err = parseName(w); return err })
	case "nodes":
		if s.Nodes > 0 {
			return errors.New("the nodes are counted twice")
		}
		return one(args, func(w string) (err error) { s.Nodes, err = parseInt(w, 1, MaxNodes); return err })
	case "seed":
		return one(args, func(w string) (err error) { s.Seed, err = strconv.ParseUint(w, 10, 64); return err })
	case "min":
		return one(args, func(w string) (err error) { s.Min, err = parseInt(w, 1, MaxNodes); return err })
	case "rounds":
		return one(args, func(w string) (err error) { s.Rounds, err = parseInt(w, 1, MaxRounds); return err })
	case "bytes":
		return one(args, func(w string) error { n, err := parseBytes(w, MaxBytes); s.Bytes = int(n); return err })
	case "pause":
		return one(args, func(w string) (err error) { s.Pause, err = parseTime(w); return err })
	case "region":
		return s.region(args)
	case "port":
		return s.portLine(args)
	case "link":
		return s.linkLine(args)
	case "at", "round":
		return s.fault(verb, args)
	}
	return fmt.Errorf("%q: want name, nodes, seed, region, port, link, min, rounds, bytes, pause, at or round", verb)
}

func one(args []string, set func(string) error) error {
	if len(args) != 1 {
		return fmt.Errorf("%d words after the first: want one", len(args))
	}
	return set(args[0])
}

// region NAME SPAN
func (s *Scenario) region(args []string) error {
	if len(args) != 2 {
		return errors.New("want: region NAME FIRST-LAST")
	}
	name, err := parseName(args[0])
	if err != nil {
		return err
	}
	if !unicode.IsLetter(rune(name[0])) {
		return fmt.Errorf("region %q: want a name that begins with a letter", name)
	}
	span, err := s.span(args[1])
	if err != nil {
		return err
	}
	for _, r := range s.Regions {
		if r.Name == name || r.Nodes.First <= span.Last && span.First <= r.Nodes.Last {
			return fmt.Errorf("region %s shares its name or nodes with %s", name, r.Name)
		}
	}
	s.Regions = append(s.Regions, Region{name, span})
	return nil
}

// port SPAN up=RATE down=RATE queue=BYTES
func (s *Scenario) portLine(args []string) error {
	if len(args) < 2 {
		return errors.New("want: port FIRST-LAST up=RATE down=RATE queue=BYTES")
	}
	span, err := s.span(args[0])
	if err != nil {
		return err
	}
	p := Port{Nodes: span}
	if err := parsePort(args[1:], &p.Port); err != nil {
		return err
	}
	s.Ports = append(s.Ports, p)
	return nil
}

// link PLACE PLACE latency=TIME jitter=TIME rate=RATE loss=SHARE
func (s *Scenario) linkLine(args []string) error {
	if len(args) < 3 {
		return errors.New("want: link PLACE PLACE latency=TIME jitter=TIME rate=RATE loss=SHARE")
	}
	l := Link{From: args[0], To: args[1]}
	for _, place := range args[:2] {
		if err := s.place(place); err != nil {
			return err
		}
	}
	if err := parseLink(args[2:], &l.Link); err != nil {
		return err
	}
	s.Links = append(s.Links, l)
	return nil
}

// place checks the name of one.
func (s *Scenario) place(place string) error {
	if place == "*" {
		return nil
	}
	for _, r := range s.Regions {
		if r.Name == place {
			return nil
		}
	}
	if _, err := s.span(place); err != nil {
		return fmt.Errorf("%q is neither a region above, nor a span of nodes, nor *", place)
	}
	return nil
}

// at TIME KIND NODE…, or round N KIND NODE…
func (s *Scenario) fault(verb string, args []string) error {
	if len(args) < 3 {
		return fmt.Errorf("want: %s WHEN KIND NODE…", verb)
	}
	if len(s.Faults) >= MaxFaults {
		return fmt.Errorf("more than %d faults", MaxFaults)
	}
	f := Fault{Kind: Kind(args[1])}
	var err error
	if verb == "at" {
		f.At, err = parseTime(args[0])
	} else {
		f.Round, err = parseInt(args[0], 1, MaxRounds)
	}
	if err != nil {
		return err
	}
	n := f.Kind.operands()
	if n == 0 {
		return fmt.Errorf("%q: want kill, restart, freeze, thaw, cut, heal, slow, relink or skew", f.Kind)
	}
	if len(args) < 2+n {
		return fmt.Errorf("%s needs %d nodes", f.Kind, n)
	}
	for _, w := range args[2 : 2+n] {
		node, err := parseInt(w, 0, s.Nodes-1)
		if err != nil {
			return err
		}
		f.Nodes = append(f.Nodes, node)
	}
	if n == 2 && f.Nodes[0] == f.Nodes[1] {
		return fmt.Errorf("%s of node %d with itself", f.Kind, f.Nodes[0])
	}
	switch rest := args[2+n:]; f.Kind {
	case Slow:
		err = parsePort(rest, &f.Port)
	case Relink:
		err = parseLink(rest, &f.Link)
	case Skew:
		err = one(rest, func(w string) (err error) { f.Ahead, err = parseSkew(w); return err })
	default:
		if len(rest) > 0 {
			err = fmt.Errorf("%q after the nodes of %s", rest[0], f.Kind)
		}
	}
	s.Faults = append(s.Faults, f)
	return err
}

func (s *Scenario) span(w string) (Span, error) {
	span, err := parseSpan(w)
	if err == nil && span.Last >= s.Nodes {
		err = fmt.Errorf("node %d of %d, which count from 0", span.Last, s.Nodes)
	}
	return span, err
}

func parsePort(words []string, p *simlink.Port) error {
	return settings(words, map[string]func(string) error{
		"up":   func(w string) (err error) { p.Up, err = parseRate(w); return err },
		"down": func(w string) (err error) { p.Down, err = parseRate(w); return err },
		"queue": func(w string) error {
			n, err := parseBytes(w, MaxBytes)
			p.Queue = int(n)
			return err
		},
	})
}

func parseLink(words []string, l *simlink.Link) error {
	return settings(words, map[string]func(string) error{
		"latency": func(w string) (err error) { l.Latency, err = parseTime(w); return err },
		"jitter":  func(w string) (err error) { l.Jitter, err = parseTime(w); return err },
		"rate":    func(w string) (err error) { l.Rate, err = parseRate(w); return err },
		"loss": func(w string) (err error) {
			l.Loss, err = strconv.ParseFloat(w, 64)
			if err == nil && !(l.Loss >= 0 && l.Loss < 1) {
				err = fmt.Errorf("loss of %s: want a share, from 0 to less than 1", w)
			}
			return err
		},
	})
}

// settings reads words of the form NAME=VALUE, each name once.
func settings(words []string, set map[string]func(string) error) error {
	if len(words) == 0 {
		return errors.New("want settings, such as latency=10ms or up=1MB")
	}
	for _, w := range words {
		name, value, _ := strings.Cut(w, "=")
		f := set[name]
		if f == nil {
			return fmt.Errorf("%q is no setting here, or comes twice", w)
		}
		delete(set, name)
		if err := f(value); err != nil {
			return err
		}
	}
	return nil
}
