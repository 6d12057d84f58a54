package schedule

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// MaxArrows bounds the moves that WriteSVG will draw; nobody reads more.
const MaxArrows = 1 << 16

// Measures of a drawing, in pixels.
const (
	gutter    = 40  // beside the ranks, left for the rounds' numbers
	heading   = 74  // title, legend and the ranks' names
	footing   = 10  // below the last round
	rowHeight = 17  // of one line of arrows, label included
	bandPad   = 4   // above and below the arrows of a round
	column    = 46  // least distance of two ranks
	wide      = 140 // most
	glyph     = 6.1 // width of a letter in a label
	narrowest = 360 // picture that holds the legend
)

// svgStyle tells folds from copies by line, head and sign as well as by colour.
const svgStyle = `<style>
text{font:11px ui-monospace,SFMono-Regular,Menlo,"DejaVu Sans Mono",monospace;fill:#1b1f24}
.name{font-size:14px;font-weight:bold}.dim{fill:#59636e}.mid{text-anchor:middle}
.ground{fill:#fff}.band{fill:#f3f5f7}.life{stroke:#c4ccd4}
.label{font-size:10px;text-anchor:middle;stroke:#fff;stroke-width:3px;stroke-linejoin:round;paint-order:stroke}
.odd .label{stroke:#f3f5f7}
.fold path{stroke:#0b57b0;stroke-width:1.6;fill:none}.fold .head,.fold circle{fill:#0b57b0}
.copy path{stroke:#8f4a00;stroke-width:1.4;fill:none}.copy .line{stroke-dasharray:5 3}.copy circle{fill:#8f4a00}
@media (prefers-color-scheme:dark){
text{fill:#e6e9ed}.dim{fill:#9aa5b1}.ground{fill:#12161b}.band{fill:#1b2128}.life{stroke:#3a434d}
.label{stroke:#12161b}.odd .label{stroke:#1b2128}
.fold path{stroke:#79b8ff}.fold .head,.fold circle{fill:#79b8ff}
.copy path{stroke:#ffb86b}.copy circle{fill:#ffb86b}}
</style>
`

// WriteSVG draws s: ranks side by side, rounds one below the other, an arrow for
// what one rank sends to another in a round, labelled with the chunks as String
// prints them. What is folded in has a solid line, a filled head and a plus;
// what is copied a dashed line and an open head. The picture refers to nothing
// outside itself and follows the viewer's preference for light or dark.
//
// It fails if s is malformed or has more than MaxArrows moves, or w fails.
func WriteSVG(w io.Writer, s Schedule) error {
	if err := s.wellFormed(); err != nil {
		return fmt.Errorf("schedule: draw %.80s: %w", s.Name, err)
	}
	moves := 0
	for _, round := range s.Rounds {
		moves += len(round)
	}
	if moves+s.Ranks+len(s.Rounds) > MaxArrows {
		return fmt.Errorf("schedule: draw %.80s: %d moves of %d ranks in %d rounds: at most %d in all",
			s.Name, moves, s.Ranks, len(s.Rounds), MaxArrows)
	}
	if _, err := w.Write(newDrawing(s).render()); err != nil {
		return fmt.Errorf("schedule: draw %.80s: %w", s.Name, err)
	}
	return nil
}

// A drawing is a schedule laid out.
type drawing struct {
	Schedule
	bands  [][][]arrow // by round and row
	column int
	width  int
	height int
	b      bytes.Buffer
}

// An arrow is all that one rank folds into, or copies to, another in a round.
type arrow struct {
	from, to    int
	fold        bool
	label, full string
	lo, hi      float64 // how far it and its label reach
}

func newDrawing(s Schedule) *drawing {
	d := &drawing{Schedule: s, column: column}
	rounds := make([][]arrow, len(s.Rounds))
	for i, round := range s.Rounds {
		rounds[i] = arrows(round)
		for _, a := range rounds[i] {
			apart := max(a.from-a.to, a.to-a.from)
			d.column = max(d.column, min(wide, (int(a.labelWidth())+22)/apart))
		}
	}
	title := 9 * min(utf8.RuneCountInString(s.Name), 80)
	d.width = max(narrowest, gutter+d.column*s.Ranks, title+16)
	d.height = heading + footing
	for _, all := range rounds {
		rows := d.pack(all)
		d.bands = append(d.bands, rows)
		d.height += bandHeight(rows)
	}
	return d
}

// arrows joins the moves of a round that have the same ends and the same kind.
func arrows(round Round) []arrow {
	type key struct {
		from, to int
		fold     bool
	}
	joined := map[key][]string{} // the chunks
	var keys []key
	for _, m := range round {
		k := key{m.From, m.To, m.Reduce}
		if joined[k] == nil {
			keys = append(keys, k)
		}
		_, chunks, _ := strings.Cut(strings.TrimSuffix(m.String(), "+"), " ")
		joined[k] = append(joined[k], chunks)
	}
	all := make([]arrow, len(keys))
	for i, k := range keys {
		chunks, plus := joined[k], ""
		if k.fold {
			plus = "+"
		}
		full := strings.Join(chunks, " ")
		label := full
		if n := len(chunks); n > 3 {
			label = fmt.Sprintf("%s … %s (%d)", chunks[0], chunks[n-1], n)
		}
		all[i] = arrow{from: k.from, to: k.to, fold: k.fold, label: label + plus,
			full: fmt.Sprintf("%d→%d %s%s", k.from, k.to, full, plus)}
	}
	return all
}

func (a arrow) labelWidth() float64 { return glyph * float64(utf8.RuneCountInString(a.label)) }

// pack lays the arrows of a round in as few rows as there are at the most above
// one another.
func (d *drawing) pack(all []arrow) [][]arrow {
	for i := range all {
		a := &all[i]
		half := a.labelWidth()/2 + 2
		center := d.labelAt(*a)
		a.lo = min(float64(d.x(min(a.from, a.to))), center-half)
		a.hi = max(float64(d.x(max(a.from, a.to))), center+half)
	}
	slices.SortStableFunc(all, func(a, b arrow) int { return cmp.Compare(a.lo, b.lo) })
	var rows [][]arrow
	for _, a := range all {
		i := slices.IndexFunc(rows, func(row []arrow) bool { return row[len(row)-1].hi <= a.lo })
		if i < 0 {
			i, rows = len(rows), append(rows, nil)
		}
		rows[i] = append(rows[i], a)
	}
	return rows
}

// x is where a rank's line of life is.
func (d *drawing) x(rank int) int { return gutter + d.column/2 + d.column*rank }

// labelAt is the middle of an arrow's label: that of the arrow, as far as the
// picture is wide enough.
func (d *drawing) labelAt(a arrow) float64 {
	half := a.labelWidth()/2 + 2
	middle := float64(d.x(a.from)+d.x(a.to)) / 2
	return max(half, min(middle, float64(d.width)-half))
}

func bandHeight(rows [][]arrow) int { return 2*bandPad + rowHeight*max(len(rows), 1) }

func (d *drawing) printf(format string, args ...any) { fmt.Fprintf(&d.b, format, args...) }

func (d *drawing) render() []byte {
	d.printf(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" role="img">`+"\n",
		d.width, d.height, d.width, d.height)
	d.printf("<title>%s</title>\n", escape(d.Name))
	d.b.WriteString(svgStyle)
	d.printf(`<rect class="ground" width="%d" height="%d"/>`+"\n", d.width, d.height)
	y := heading
	for i, rows := range d.bands { // under the lines of life
		if i%2 == 1 {
			d.printf(`<rect class="band" y="%d" width="%d" height="%d"/>`+"\n", y, d.width, bandHeight(rows))
		}
		y += bandHeight(rows)
	}
	d.head()
	y = heading
	for i, rows := range d.bands {
		d.printf(`<g class="%s"><text class="dim" x="8" y="%d">%d</text>`+"\n",
			[...]string{"even", "odd"}[i%2], y+bandPad+rowHeight-4, i)
		for j, row := range rows {
			for _, a := range row {
				d.arrow(a, y+bandPad+(j+1)*rowHeight-4)
			}
		}
		d.printf("</g>\n")
		y += bandHeight(rows)
	}
	d.printf("</svg>\n")
	return d.b.Bytes()
}

// head draws the title, the legend, and the ranks with their lines of life.
func (d *drawing) head() {
	d.printf(`<text class="name" x="8" y="18">%s</text>`+"\n", escape(d.Name))
	d.printf(`<text class="dim" x="8" y="36">%d ranks, %d chunks, %d rounds</text>`+"\n",
		d.Ranks, d.Chunks, len(d.Rounds))
	d.line(8, 40, 47, true)
	d.printf(`<text class="dim" x="46" y="51">folded in +</text>` + "\n")
	d.line(138, 170, 47, false)
	d.printf(`<text class="dim" x="176" y="51">copied</text>` + "\n")
	for r := range d.Ranks {
		x := d.x(r)
		d.printf(`<text class="mid" x="%d" y="68">%d</text><path class="life" d="M%d %dV%d"/>`+"\n",
			x, r, x, heading, d.height-footing)
	}
}

func (d *drawing) arrow(a arrow, y int) {
	d.printf(`<g><title>%s</title>`, escape(a.full))
	d.line(d.x(a.from), d.x(a.to), y, a.fold)
	d.printf(`<text class="label" x="%.1f" y="%d">%s</text></g>`+"\n", d.labelAt(a), y-4, escape(a.label))
}

// line draws an arrow's line, from a dot to a head.
func (d *drawing) line(from, to, y int, fold bool) {
	back := -1 // from the tip
	if to < from {
		back = 1
	}
	tip, class, closed := to+2*back, "copy", ""
	if fold {
		class, closed = "fold", "Z"
	}
	d.printf(`<g class="%s"><circle cx="%d" cy="%d" r="2"/><path class="line" d="M%d %dH%d"/>`,
		class, from, y, from, y, tip)
	d.printf(`<path class="head" d="M%d %dL%d %dL%d %d%s"/></g>`, tip+7*back, y-4, tip, y, tip+7*back, y+4, closed)
}

// escape makes text safe between tags; what XML cannot hold becomes U+FFFD.
func escape(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // a Builder does not fail
	return b.String()
}
