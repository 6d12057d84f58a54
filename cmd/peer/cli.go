package main

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// A cli is the grammar of the command line. Train is the default, so that
// "peer --bootstrap ADDR --world 4" needs no verb.
type cli struct {
	Train    trainCmd    `cmd:"" default:"withargs" help:"Join a mesh and train (the default)."`
	Launch   launchCmd   `cmd:"" help:"Run a world of local processes and train on it."`
	Schedule scheduleCmd `cmd:"" help:"Print the schedule of a collective, and its price."`
	Bench    benchCmd    `cmd:"" help:"Measure operations: time, bandwidth, and whether results are right."`
	Diagnose diagnoseCmd `cmd:"" help:"Say from the ranks' last operations who is late, who called what else, and who is gone."`
	Doctor   doctorCmd   `cmd:"" help:"Examine this machine, and the way to a bootstrap peer."`
	Sim      simCmd      `cmd:"" help:"Play a scenario of nodes, links and faults in virtual time."`
	GPU      gpuCmd      `cmd:"" name:"gpu" help:"Say which GPUs there are, or check one."`
	GPUPair  gpuPairCmd  `cmd:"" name:"gpu-pair" hidden:""`
	ID       idCmd       `cmd:"" name:"id" help:"Print the peer ID that belongs to an identity file."`
	Version  versionCmd  `cmd:"" help:"Print the version."`
	Man      manCmd      `cmd:"" help:"Print the manual page: peer man | man -l -."`

	Completion completionCmd `cmd:"" help:"Print what has a shell complete peer's words: source <(peer completion bash)."`
}

// A command is what the command line asks for.
type command interface {
	Run(p *process) error
}

// parse reads the command line. It returns neither command nor error after it
// has answered --help on stdout.
func parse(args []string, stdout io.Writer) (command, error) {
	var c cli
	// Kong would exit after --help; here that is for main alone to do, and kong
	// goes on parsing as if nothing had happened.
	helped := false
	parser, err := grammar(&c, stdout, func(int) { helped = true })
	if err != nil {
		return nil, err
	}
	parsed, err := parser.Parse(joinNegatives(args))
	if helped {
		return nil, nil
	}
	if err != nil {
		return nil, usagef("%w (peer --help lists the flags)", err)
	}
	return parsed.Selected().Target.Addr().Interface().(command), nil
}

// grammar is the command line's. Exit is called once --help has been answered.
func grammar(c *cli, stdout io.Writer, exit func(status int)) (*kong.Kong, error) {
	k, err := kong.New(c,
		kong.Name("peer"),
		kong.Description("Data-parallel training, peer to peer: no master, one binary."),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.Writers(stdout, stdout),
		kong.Vars{"benchops": namesOf(benchOps, benchOp.String)},
		kong.Exit(exit),
	)
	if err != nil {
		return nil, fmt.Errorf("peer: the command line's grammar: %w", err)
	}
	return k, nil
}

var (
	// negative is a value that kong would take for a short flag, and flagAlone a flag
	// that may be waiting for it.
	negative  = regexp.MustCompile(`^-[0-9.]`)
	flagAlone = regexp.MustCompile(`^(-[a-z]|--[a-z][-a-z]*)$`)
)

// joinNegatives writes --steps -1 as --steps=-1, and -n -1 as -n-1, so that it is
// our bounds that answer.
func joinNegatives(args []string) (joined []string) {
	for _, a := range args {
		last := len(joined) - 1
		switch {
		case last < 0 || slices.Contains(joined, "--") || !negative.MatchString(a) || !flagAlone.MatchString(joined[last]):
			joined = append(joined, a)
		case strings.HasPrefix(joined[last], "--"):
			joined[last] += "=" + a
		default:
			joined[last] += a
		}
	}
	return joined
}
