// Package doc holds the pages that people read, and checks all pages of the project: what
// they show can be done, leads somewhere and compiles.
//
// A command is shown in a fenced block of the kind console, after a prompt:
//
//	$ peer version             run by bash, in a folder that is like the repository's root
//	a$ peer --bootstrap …      run on machine a, which is a network namespace, at 192.0.2.7
//	b$ peer --bootstrap …      run on machine b, at the same time, at 192.0.2.8
//
// All lines below without a prompt are among those that the commands print; … stands for
// any text. Words after the kind say more: needs=root,docker is what the block takes
// (without, it is skipped, and only its flags are checked), fails says that it ends with an
// error, long that it runs in make pages only, and dated that what it printed on some day is
// a record and is not compared.
//
// A block of the kind go that names a file is an extract of it; … stands for what is left out.
package doc

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// root is the folder of go.mod, seen from here.
const root = ".."

// A page is a Markdown file.
type page struct {
	path   string // from root
	text   string // without its fenced blocks
	blocks []block
}

// A block is what stands between two fences.
type block struct {
	kind  string   // console, go …
	words []string // after the kind
	line  int      // of the page, where it begins
	lines []string
}

// needs are what a block takes.
func (b block) needs() []string {
	for _, w := range b.words {
		if list, ok := strings.CutPrefix(w, "needs="); ok {
			return strings.Split(list, ",")
		}
	}
	return nil
}

// prompt is what stands before a command.
var prompt = regexp.MustCompile(`^([ab]?)\$ (.*)$`)

// A command is one line that is typed, on machine a, b, or this one.
type command struct{ machine, line string }

// script takes commands and what is printed apart.
func (b block) script() (commands []command, printed []string) {
	open := false // a command that goes on in the next line
	for _, line := range b.lines {
		if open {
			commands[len(commands)-1].line += "\n" + line
		} else if m := prompt.FindStringSubmatch(line); m != nil {
			commands = append(commands, command{m[1], m[2]})
			open = true
		} else if strings.TrimSpace(line) != "" {
			printed = append(printed, line)
		}
		open = open && strings.HasSuffix(line, `\`)
	}
	return commands, printed
}

// parse reads a page.
func parse(path, text string) page {
	p := page{path: path}
	var rest []string
	var b *block
	for i, line := range strings.Split(text, "\n") {
		fence, isFence := strings.CutPrefix(strings.TrimSpace(line), "```")
		switch {
		case isFence && b != nil:
			p.blocks = append(p.blocks, *b)
			b = nil
		case isFence:
			words := append(strings.Fields(fence), "")
			b = &block{kind: words[0], words: words[1:], line: i + 1}
		case b != nil:
			b.lines = append(b.lines, line)
		default:
			rest = append(rest, line)
			continue
		}
		rest = append(rest, "") // lines keep their numbers
	}
	p.text = strings.Join(rest, "\n")
	return p
}

// pages are all of the project.
func pages(t *testing.T) (all []page) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && strings.HasPrefix(d.Name(), ".") && path != root:
			return fs.SkipDir
		case d.IsDir() || filepath.Ext(path) != ".md":
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		path, err = filepath.Rel(root, path)
		all = append(all, parse(filepath.ToSlash(path), string(bytes.ReplaceAll(text, []byte("\r"), nil))))
		return err
	})
	if err != nil || len(all) < 10 {
		t.Fatalf("%d pages, %v", len(all), err)
	}
	return all
}

func TestParse(t *testing.T) {
	p := parse("x.md", "a\n```console needs=root,ip fails\n$ one \\\n  two\nout …\n\nb$ three\n```\nz")
	if p.text != "a\n\n\n\n\n\n\n\nz" || len(p.blocks) != 1 {
		t.Fatalf("%+v", p)
	}
	b := p.blocks[0]
	if b.kind != "console" || b.line != 2 || !slices.Equal(b.needs(), []string{"root", "ip"}) || !slices.Contains(b.words, "fails") {
		t.Errorf("%+v", b)
	}
	commands, printed := b.script()
	if !slices.Equal(commands, []command{{"", "one \\\n  two"}, {"b", "three"}}) || !slices.Equal(printed, []string{"out …"}) {
		t.Errorf("%q, %q", commands, printed)
	}
}
