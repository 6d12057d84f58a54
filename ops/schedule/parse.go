package schedule

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// MaxText bounds what Parse reads, in bytes: an all-reduce around a ring of
// MaxRanks is 36 MB.
const MaxText = 1 << 26

// Parse reads what String writes; spaces may be any in number. A schedule that
// it returns is well formed and no larger than Check will play, but nothing
// else is known of it.
func Parse(text string) (Schedule, error) {
	s, err := parse(text)
	if err != nil {
		return Schedule{}, fmt.Errorf("schedule: %w", err)
	}
	return s, nil
}

func parse(text string) (Schedule, error) {
	if len(text) > MaxText {
		return Schedule{}, fmt.Errorf("%d bytes of text: at most %d", len(text), MaxText)
	}
	head, rest, _ := strings.Cut(text, "\n")
	s, err := parseHead(head)
	if err != nil {
		return Schedule{}, fmt.Errorf("heading %.80q: %w", head, err)
	}
	for line := range strings.Lines(rest) {
		round, err := parseRound(line, len(s.Rounds))
		if err != nil {
			return Schedule{}, fmt.Errorf("line %d: %w", len(s.Rounds)+2, err)
		}
		s.Rounds = append(s.Rounds, round)
	}
	return s, s.wellFormed()
}

// parseHead reads "name: 3 ranks, 3 chunks"; the name may have colons in it.
func parseHead(line string) (Schedule, error) {
	colon := strings.LastIndex(line, ": ")
	if colon < 0 {
		return Schedule{}, errors.New("no colon")
	}
	sizes, ok := strings.CutSuffix(line[colon+2:], " chunks")
	ranks, chunks, comma := strings.Cut(sizes, " ranks, ")
	if !ok || !comma {
		return Schedule{}, errors.New(`want "name: n ranks, m chunks"`)
	}
	s := Schedule{Name: line[:colon]}
	var err error
	if s.Ranks, err = number(ranks); err != nil {
		return s, err
	}
	s.Chunks, err = number(chunks)
	return s, err
}

// parseRound reads "2  0→1 [2]+  1→2 [0]→[1]", which must be the i-th. It goes
// word by word and stops at the first that is wrong, so that a bad line costs
// no memory.
func parseRound(line string, i int) (round Round, err error) {
	want := "number" // then "ends", then "chunks", and so on
	var ends string
	for word := range strings.FieldsSeq(line) {
		switch want {
		case "number":
			if word != strconv.Itoa(i) {
				return nil, fmt.Errorf("%.80q: want round %d", word, i)
			}
			want = "ends"
		case "ends":
			ends, want = word, "chunks"
		case "chunks":
			m, err := parseMove(ends, word)
			if err != nil {
				return nil, fmt.Errorf("\"%.80s %.80s\": %w", ends, word, err)
			}
			round, want = append(round, m), "ends"
		}
	}
	if want != "ends" {
		return nil, fmt.Errorf("ends where the %s should be", want)
	}
	return round, nil
}

// parseMove reads "0→1" and "[2:4]→[5:7]+".
func parseMove(ends, chunks string) (m Move, err error) {
	from, to, ok := strings.Cut(ends, "→")
	if !ok {
		return m, errors.New("want from→to")
	}
	if m.From, err = number(from); err != nil {
		return m, err
	}
	if m.To, err = number(to); err != nil {
		return m, err
	}
	chunks, m.Reduce = strings.CutSuffix(chunks, "+")
	src, dst, moved := strings.Cut(chunks, "→")
	if m.Src, m.N, err = parseSpan(src); err != nil {
		return m, err
	}
	m.Dst = m.Src
	if moved {
		var n int
		if m.Dst, n, err = parseSpan(dst); err == nil && n != m.N {
			err = fmt.Errorf("%d chunks leave, %d land", m.N, n)
		}
	}
	return m, err
}

// parseSpan reads "[2]" and "[2:4]": where a span starts and how long it is.
func parseSpan(text string) (lo, n int, err error) {
	inner, ok := strings.CutPrefix(text, "[")
	inner, closed := strings.CutSuffix(inner, "]")
	if !ok || !closed {
		return 0, 0, errors.New("want chunks in brackets")
	}
	first, end, ranged := strings.Cut(inner, ":")
	if lo, err = number(first); err != nil {
		return 0, 0, err
	}
	if !ranged {
		return lo, 1, nil
	}
	hi, err := number(end)
	if err == nil && hi <= lo {
		err = fmt.Errorf("no chunks from %d to %d", lo, hi)
	}
	return lo, hi - lo, err
}

// number reads digits that fit 31 bits, so that sums of two fit any int.
func number(text string) (int, error) {
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil {
		return 0, fmt.Errorf("%.80q is no number of 31 bits", text)
	}
	return int(n), nil
}
