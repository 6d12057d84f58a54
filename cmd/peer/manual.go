package main

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// A manCmd prints the manual page, made from the grammar of the command line.
type manCmd struct{}

// Run prints it, as man -l takes it.
func (manCmd) Run(p *process) error {
	m, err := described()
	if err != nil {
		return err
	}
	return writeManual(p.stdout, m)
}

// A completionCmd prints what has a shell complete the command line.
type completionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// Run prints it: source <(peer completion bash).
func (c completionCmd) Run(p *process) error {
	m, err := described()
	if err != nil {
		return err
	}
	_, err = io.WriteString(p.stdout, completions[c.Shell](m))
	return err
}

// described is the command line's grammar, for those who describe it: nothing is parsed.
func described() (*kong.Application, error) {
	k, err := grammar(new(cli), io.Discard, func(int) {})
	if err != nil {
		return nil, err
	}
	return k.Model, nil
}

// verbs are the subcommands, and flagsOf their flags, without those that are hidden.
func verbs(m *kong.Application) []*kong.Node {
	return slices.DeleteFunc(slices.Clone(m.Children), func(n *kong.Node) bool { return n.Hidden })
}

func flagsOf(n *kong.Node) []*kong.Flag {
	return slices.DeleteFunc(slices.Clone(n.Flags), func(f *kong.Flag) bool { return f.Hidden })
}

// choices are the words that a flag or an argument may have; none: any.
func choices(v *kong.Value) []string {
	if v.Enum == "" {
		return nil
	}
	return v.EnumSlice()
}

// writeManual writes the page in the macros of man(7).
func writeManual(w io.Writer, m *kong.Application) error {
	var b strings.Builder
	fmt.Fprintf(&b, ".TH PEER 1\n.SH NAME\npeer \\- %s\n.SH SYNOPSIS\n.B peer\n[\\fIcommand\\fR] [\\fIflags\\fR]\n.SH COMMANDS\n", roff(m.Help))
	for _, n := range verbs(m) {
		fmt.Fprintf(&b, ".SS peer %s\n%s\n", roff(n.Name), roff(n.Help))
		for _, a := range n.Positional {
			fmt.Fprintf(&b, ".TP\n.I %s\n%s\n", roff(a.Name), roff(a.Help))
		}
		for _, f := range flagsOf(n) {
			fmt.Fprintf(&b, ".TP\n%s\n%s\n", flagHead(f), roff(f.Help))
		}
	}
	b.WriteString(".SH EXIT STATUS\n0: trained to the end. 1: the run failed. 2: the command line, or a file that it names, is at fault. " +
		"128 and a signal's number: ended by it.\n.SH ENVIRONMENT\nPEERMESH_*, WORLD_SIZE, RANK, MASTER_ADDR, MASTER_PORT and SLURM_* say the place " +
		"of a trainer that calls mesh.FromEnv; peer launch sets them. GOLOG_LOG_LEVEL sets levels of the log by subsystem.\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// flagHead is a flag with its short form and its value.
func flagHead(f *kong.Flag) string {
	head := "\\fB" + roff("--"+f.Name) + "\\fR"
	if f.Short != 0 {
		head = "\\fB" + roff("-"+string(f.Short)) + "\\fR, " + head
	}
	if f.IsBool() {
		return head
	}
	if c := choices(f.Value); c != nil {
		return head + "=" + roff(strings.Join(c, "|"))
	}
	return head + "=\\fI" + roff(f.FormatPlaceHolder()) + "\\fR"
}

// roff keeps man from taking text for its own words.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(strings.TrimSpace(text))
	if strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
		text = `\&` + text
	}
	return text
}

// completions are the scripts, by shell.
var completions = map[string]func(*kong.Application) string{"bash": bashCompletion, "zsh": zshCompletion, "fish": fishCompletion}

// words are what may come next after a verb: its flags, and the words of its argument.
func words(n *kong.Node) []string {
	var all []string
	for _, f := range flagsOf(n) {
		all = append(all, "--"+f.Name)
	}
	for _, a := range n.Positional {
		all = append(all, choices(a)...)
	}
	return all
}

// bashCompletion completes verbs, flags, words of flags that have them, and else files.
// Without a verb the flags are train's.
func bashCompletion(m *kong.Application) string {
	var b strings.Builder
	b.WriteString("_peer() {\n\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} words\n" +
		"\t# a value: --flag word, or --flag=word, which bash cuts at the sign\n" +
		"\tif [[ $cur == \"=\" ]]; then cur=; elif [[ $prev == \"=\" ]]; then prev=${COMP_WORDS[COMP_CWORD-2]}; fi\n\tcase \"${COMP_WORDS[1]} $prev\" in\n")
	names := []string{}
	for _, n := range verbs(m) {
		names = append(names, n.Name)
		for _, f := range flagsOf(n) {
			if c := choices(f.Value); c != nil {
				fmt.Fprintf(&b, "\t%q*%q) words=%q ;;\n", n.Name, " --"+f.Name, strings.Join(c, " "))
			}
		}
	}
	b.WriteString("\t*) case \"${COMP_WORDS[1]}\" in\n")
	for _, n := range verbs(m) {
		pattern := n.Name
		if n.Name == "train" {
			pattern += "|-*"
		}
		fmt.Fprintf(&b, "\t\t%s) words=%q ;;\n", pattern, strings.Join(words(n), " "))
	}
	fmt.Fprintf(&b, "\t\tesac ;;\n\tesac\n\tif (( COMP_CWORD == 1 )); then words=\"%s $words\"; fi\n", strings.Join(names, " "))
	b.WriteString("\tCOMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n}\ncomplete -o default -F _peer peer\n")
	return b.String()
}

// zshCompletion is bash's, which zsh understands.
func zshCompletion(m *kong.Application) string {
	return "autoload -U +X compinit && compinit -i\nautoload -U +X bashcompinit && bashcompinit\n" + bashCompletion(m)
}

// fishCompletion has a line for each flag, with its help.
func fishCompletion(m *kong.Application) string {
	var b strings.Builder
	for _, n := range verbs(m) {
		fmt.Fprintf(&b, "complete -c peer -n __fish_use_subcommand -f -a %s -d %s\n", n.Name, fishQuoted(n.Help))
		when := fmt.Sprintf("'__fish_seen_subcommand_from %s'", n.Name)
		for _, f := range flagsOf(n) {
			fmt.Fprintf(&b, "complete -c peer -n %s -l %s", when, f.Name)
			if f.Short != 0 {
				fmt.Fprintf(&b, " -s %c", f.Short)
			}
			switch c := choices(f.Value); {
			case c != nil:
				fmt.Fprintf(&b, " -x -a %s", fishQuoted(strings.Join(c, " ")))
			case !f.IsBool():
				b.WriteString(" -r")
			}
			fmt.Fprintf(&b, " -d %s\n", fishQuoted(f.Help))
		}
		for _, a := range n.Positional {
			if c := choices(a); c != nil {
				fmt.Fprintf(&b, "complete -c peer -n %s -f -a %s\n", when, fishQuoted(strings.Join(c, " ")))
			}
		}
	}
	return b.String()
}

var sentence = regexp.MustCompile(`^[^.;(]*`)

// fishQuoted is the beginning of a help as one word.
func fishQuoted(help string) string {
	text := strings.TrimSpace(sentence.FindString(help))
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(text) + "'"
}
