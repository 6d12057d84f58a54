package logger

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"

	"peermesh/trainer/internal/atomicfile"
)

// stepColumn is the first one.
const stepColumn = "step"

// MaxColumns bounds the metrics of a CSV.
const MaxColumns = 1 << 12

// CSV is a table with a row a step and a column a metric; what a step does not have is
// empty. The first column is step.
type CSV struct {
	path    string
	f       *os.File
	w       *csv.Writer
	columns []string // step first
}

// OpenCSV opens a table to append to, or makes one. A last row that is incomplete, as
// after a loss of power, is dropped.
func OpenCSV(path string) (*CSV, error) {
	c := &CSV{path: path}
	rows, err := c.read()
	if err != nil {
		return nil, err
	}
	c.columns = []string{stepColumn}
	if len(rows) > 0 {
		c.columns = rows[0]
	}
	return c, c.rewrite(rows)
}

// Log writes a row. A metric that is new becomes a column, for which the file is written
// anew beside the old one and then takes its place.
func (c *CSV) Log(step int64, metrics map[string]float64) error {
	if _, taken := metrics[stepColumn]; taken {
		return errors.New("logger: a metric of the name step, which is the first column's")
	}
	var news []string
	for _, name := range sorted(metrics) {
		if !slices.Contains(c.columns, name) {
			news = append(news, name)
		}
	}
	if len(news) > 0 {
		if len(c.columns)+len(news) > MaxColumns {
			return fmt.Errorf("logger: %s: more than %d columns", c.path, MaxColumns)
		}
		rows, err := c.read()
		if err != nil {
			return err
		}
		c.columns = append(c.columns, news...)
		if err := c.rewrite(rows); err != nil {
			return err
		}
	}
	row := make([]string, len(c.columns))
	row[0] = strconv.FormatInt(step, 10)
	for name, v := range metrics {
		row[slices.Index(c.columns, name)] = format(v)
	}
	return c.write([][]string{row})
}

func (c *CSV) write(rows [][]string) error {
	if err := c.w.WriteAll(rows); err != nil { // which flushes
		return fmt.Errorf("logger: %w", err)
	}
	return nil
}

// read is the rows of the file that are whole, the names first.
func (c *CSV) read() (rows [][]string, err error) {
	p, err := os.ReadFile(c.path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("logger: %w", err)
	}
	rows, err = readTable(p)
	if err != nil {
		return nil, fmt.Errorf("logger: %s: %w", c.path, err)
	}
	return rows, nil
}

// readTable reads what may be any file: a table's rows up to one that is not whole.
func readTable(p []byte) (rows [][]string, err error) {
	p = p[:bytes.LastIndexByte(p, '\n')+1]
	r := csv.NewReader(bytes.NewReader(p))
	r.FieldsPerRecord = -1
	for {
		row, err := r.Read()
		if err != nil { // the end, or no CSV
			return rows, nil
		}
		if len(rows) == 0 && (row[0] != stepColumn || len(row) > MaxColumns) {
			return nil, errors.New("it is no table of steps")
		}
		if len(rows) > 0 && len(row) != len(rows[0]) {
			return rows, nil
		}
		rows = append(rows, row)
	}
}

// rewrite puts rows into a new file, under the columns of now, and opens that.
func (c *CSV) rewrite(rows [][]string) error {
	if c.f != nil {
		if err := c.Close(); err != nil {
			return err
		}
	}
	text := new(bytes.Buffer)
	w := csv.NewWriter(text)
	all := [][]string{c.columns}
	for _, row := range rows[min(1, len(rows)):] {
		all = append(all, append(row, make([]string, len(c.columns)-len(row))...))
	}
	err := w.WriteAll(all)
	if err == nil {
		err = atomicfile.Write(c.path, func(w io.Writer) error {
			_, err := w.Write(text.Bytes())
			return err
		})
	}
	if err == nil {
		c.f, err = os.OpenFile(c.path, os.O_WRONLY|os.O_APPEND, 0)
	}
	if err != nil {
		return fmt.Errorf("logger: %w", err)
	}
	c.w = csv.NewWriter(c.f)
	return nil
}

// Close closes the file.
func (c *CSV) Close() error {
	if err := c.f.Close(); err != nil {
		return fmt.Errorf("logger: %w", err)
	}
	return nil
}

// format is the shortest text that reads back as v.
func format(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
