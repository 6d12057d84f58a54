package watch

import (
	"bytes"
	"encoding/json"
)

// A scribe writes States again and again, in memory that it keeps: what a page costs is
// less the writing than the memory that would be made anew for it and given back, twice a
// second. Of the curves only what has been added is written.
type scribe struct {
	state  State
	head   bytes.Buffer
	curves [4]transcript
	text   []byte
}

// write is a Board's State in JSON, until the next.
func (s *scribe) write(b *Board) []byte {
	b.renew(&s.state)
	s.head.Reset()
	if err := json.NewEncoder(&s.head).Encode(&s.state.Summary); err != nil {
		panic(err) // a State has nothing that JSON has no word for
	}
	head := s.head.Bytes()
	text := append(s.text[:0], head[:len(head)-len("}\n")]...)
	text = s.state.Links.append(append(text, `,"links":`...))
	c := &s.state.Curves
	text = s.curves[0].append(append(text, `,"curves":{"loss":{"points":`...), &c.Loss)
	text = s.curves[1].append(append(text, `},"epoch_loss":{"points":`...), &c.EpochLoss)
	text = s.curves[2].append(append(text, `},"accuracy":{"points":`...), &c.Accuracy)
	text = s.curves[3].append(append(text, `},"rate":{"points":`...), &c.Rate)
	s.text = append(text, "}}}"...)
	return s.text
}

// A transcript is what has been written of a curve: of the points that stay, which are all
// until it is thinned out, but for a loose one at its end.
type transcript struct {
	stride, points int
	text           []byte
}

// append writes a curve of which the transcript has the beginning.
func (t *transcript) append(b []byte, c *Curve) []byte {
	stay := len(c.Points)
	if c.loose {
		stay--
	}
	if t.stride != c.stride {
		*t = transcript{stride: c.stride, text: t.text[:0]}
	}
	t.text = c.Points[t.points:stay].append(t.text, t.points)
	t.points = stay
	b = append(append(b, '['), t.text...)
	return append(c.Points[stay:].append(b, stay), ']')
}
