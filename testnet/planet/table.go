package planet

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"peermesh/internal/bytesize"
)

// Sizes are those of a table's columns, in bytes.
var Sizes = []int{8, 1 << 10, 64 << 10, 1 << 20, 16 << 20, 128 << 20, 1 << 30}

// A Table is what every contender takes for every size.
type Table struct {
	Contenders []Contender
	Sizes      []int
	Prices     [][]time.Duration // by contender and size
	Bounds     []time.Duration   // by size
}

// NewTable prices all contenders of a world.
func NewTable(w *World, sizes []int) *Table {
	t := &Table{Contenders: w.Contenders(), Sizes: sizes}
	for _, b := range sizes {
		t.Bounds = append(t.Bounds, w.Bound(b))
	}
	for _, c := range t.Contenders {
		var row []time.Duration
		for _, b := range sizes {
			row = append(row, c.Price(b))
		}
		t.Prices = append(t.Prices, row)
	}
	return t
}

// Winner is the contender that takes the least time for the i-th size, and the one that
// comes next; −1 if there is none.
func (t *Table) Winner(i int) (first, second int) {
	first, second = -1, -1
	for c, row := range t.Prices {
		switch {
		case first < 0 || row[i] < t.Prices[first][i]:
			first, second = c, first
		case second < 0 || row[i] < t.Prices[second][i]:
			second = c
		}
	}
	return first, second
}

// Write prints the table: a row for each contender, with a star where it wins; what no
// all_reduce can do without; and how far the winner is from that, and the next from it.
func (t *Table) Write(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	row := func(name string, cell func(i int) string) {
		fmt.Fprintf(w, "%s\t", name)
		for i := range t.Sizes {
			fmt.Fprintf(w, "%s\t", cell(i))
		}
		fmt.Fprintln(w)
	}
	row("", func(i int) string { return bytesize.Text(int64(t.Sizes[i])) })
	for c := range t.Contenders {
		row(t.Contenders[c].Name, func(i int) string {
			if first, _ := t.Winner(i); first == c {
				return "*" + Brief(t.Prices[c][i])
			}
			return Brief(t.Prices[c][i])
		})
	}
	row("bound", func(i int) string { return Brief(t.Bounds[i]) })
	row("winner ÷ bound", func(i int) string {
		first, _ := t.Winner(i)
		return ratio(t.Prices[first][i], t.Bounds[i])
	})
	row("next ÷ winner", func(i int) string {
		first, second := t.Winner(i)
		if second < 0 {
			return ""
		}
		return ratio(t.Prices[second][i], t.Prices[first][i])
	})
	return w.Flush()
}

func ratio(a, b time.Duration) string {
	if b <= 0 {
		return ""
	}
	return fmt.Sprintf("%.2f", float64(a)/float64(b))
}

// Brief is a duration in three figures or so.
func Brief(d time.Duration) string {
	switch {
	case d >= 100*time.Second:
		return fmt.Sprintf("%.0fs", d.Seconds())
	case d >= time.Second:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d >= time.Millisecond:
		return fmt.Sprintf("%.0fms", d.Seconds()*1e3)
	}
	return fmt.Sprintf("%.0fµs", d.Seconds()*1e6)
}
