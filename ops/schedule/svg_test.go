package schedule

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
)

func draw(t *testing.T, s Schedule) string {
	t.Helper()
	var b strings.Builder
	if err := WriteSVG(&b, s); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// elements reads a drawing as XML and returns the attributes of every element of
// a name, and the text in it.
func elements(t *testing.T, svg, name string) (all []map[string]string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(svg))
	var open []map[string]string
	for {
		token, err := d.Token()
		if err == io.EOF {
			return all
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, svg)
		}
		switch e := token.(type) {
		case xml.StartElement:
			attributes := map[string]string{}
			for _, a := range e.Attr {
				attributes[a.Name.Local] = a.Value
			}
			open = append(open, attributes)
			if e.Name.Local == name {
				all = append(all, attributes)
			}
		case xml.CharData:
			if len(open) > 0 {
				open[len(open)-1]["text"] += string(e)
			}
		case xml.EndElement:
			open = open[:len(open)-1]
		}
	}
}

// Every move is in the picture, in its round, with its own words.
func TestDrawingSaysAll(t *testing.T) {
	for _, s := range []Schedule{
		AllReduce(Ring(5)), Tree(6, 4), Cascade(9), Pairwise(4), BinomialGather(6).Rotate(4), OneShot(4), BruckAllToAll(8), Ring(1),
	} {
		svg := draw(t, s)
		var want, got []string
		for _, round := range s.Rounds {
			for _, a := range arrows(round) {
				want = append(want, a.full)
			}
		}
		for _, title := range elements(t, svg, "title")[1:] {
			got = append(got, title["text"])
		}
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s: drawn are %q, want %q", s.Name, got, want)
		}
		chunks := 0
		for _, full := range got { // and nothing is lost where arrows are joined
			_, spans, _ := strings.Cut(strings.TrimSuffix(full, "+"), " ")
			for span := range strings.FieldsSeq(spans) {
				src, _, _ := strings.Cut(span, "→")
				_, n, err := parseSpan(src)
				if err != nil {
					t.Fatal(err)
				}
				chunks += n
			}
		}
		if chunks != together(sent(s)) {
			t.Errorf("%s: %d chunks drawn", s.Name, chunks)
		}
	}
}

// Folds are told from copies by more than their colour.
func TestFoldsAndCopiesDiffer(t *testing.T) {
	svg := draw(t, AllReduce(Binomial(2)))
	var fold, cp string
	for line := range strings.Lines(svg) {
		switch {
		case strings.Contains(line, "1→0 [0]+"):
			fold = line
		case strings.Contains(line, "0→1 [0]"):
			cp = line
		}
	}
	if !strings.Contains(fold, `class="fold"`) || !strings.Contains(fold, `Z"/>`) || !strings.Contains(fold, ">[0]+<") {
		t.Errorf("the fold is %s", fold)
	}
	if !strings.Contains(cp, `class="copy"`) || strings.Contains(cp, `Z"/>`) || !strings.Contains(cp, ">[0]<") {
		t.Errorf("the copy is %s", cp)
	}
	if !strings.Contains(svg, ".copy .line{stroke-dasharray") {
		t.Error("copies are not dashed")
	}
}

// Labels and lines of a row keep clear of one another and of the edge.
func TestRowsDoNotOverlap(t *testing.T) {
	for _, s := range []Schedule{AllReduce(Ring(16)), AllReduce(Halving(16)), Pairwise(9), Cascade(16), BruckAllToAll(16), AllReduce(Tree(16, 8))} {
		d := newDrawing(s)
		for i, rows := range d.bands {
			for _, row := range rows {
				for k, a := range row {
					if a.lo < 0 || a.hi > float64(d.width) || k > 0 && row[k-1].hi > a.lo {
						t.Errorf("%s: round %d: %s is in the way", s.Name, i, a.full)
					}
				}
			}
		}
		if d.width > 2400 {
			t.Errorf("%s is %d wide", s.Name, d.width)
		}
	}
}

func TestDrawingOfAStrangeName(t *testing.T) {
	s := Ring(3)
	s.Name = "</svg><script>alert(1)</script>&\x00\xff\"'"
	svg := draw(t, s)
	if strings.Contains(svg, "<script") || len(elements(t, svg, "script")) != 0 {
		t.Error("a name became markup")
	}
	if title := elements(t, svg, "title")[0]["text"]; !strings.HasPrefix(title, "</svg><script>alert(1)</script>&") {
		t.Errorf("the title is %q", title)
	}
	for _, outside := range []string{"href", "url(", "@import", "src="} {
		if strings.Contains(svg, outside) {
			t.Errorf("it refers to something by %s", outside)
		}
	}
}

type full struct{}

func (full) Write(p []byte) (int, error) { return 0, errFull }

var errFull = errors.New("disk full")

func TestDrawingFails(t *testing.T) {
	if err := WriteSVG(full{}, Ring(3)); !errors.Is(err, errFull) || !strings.HasPrefix(err.Error(), "schedule: draw ring: ") {
		t.Errorf("got %v", err)
	}
	for want, s := range map[string]Schedule{
		"at least one":        {},
		"no rank 7":           {Ranks: 2, Chunks: 1, Rounds: []Round{{{From: 0, To: 7, N: 1}}}},
		fmt.Sprint(MaxArrows): Ring(300),
		"at most":             {Ranks: MaxCells, Chunks: 1},
	} {
		if err := WriteSVG(io.Discard, s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
