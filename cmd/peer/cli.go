package main

import (
	"fmt"
	"io"

	"github.com/alecthomas/kong"
)

// A cli is the grammar of the command line. Train is the default, so that
// "peer --bootstrap ADDR --world 4" needs no verb.
type cli struct {
	Train    trainCmd    `cmd:"" default:"withargs" help:"Join a mesh and train (the default)."`
	Launch   launchCmd   `cmd:"" help:"Run a world of local processes and train on it."`
	Schedule scheduleCmd `cmd:"" help:"Print the schedule of a collective, and its price."`
	ID       idCmd       `cmd:"" name:"id" help:"Print the peer ID that belongs to an identity file."`
	Version  versionCmd  `cmd:"" help:"Print the version."`
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
	parser, err := kong.New(&c,
		kong.Name("peer"),
		kong.Description("Data-parallel training, peer to peer: no master, one binary."),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.Writers(stdout, stdout),
		kong.Exit(func(int) { helped = true }),
	)
	if err != nil {
		return nil, fmt.Errorf("peer: the command line's grammar: %w", err)
	}
	parsed, err := parser.Parse(args)
	if helped {
		return nil, nil
	}
	if err != nil {
		return nil, usagef("%w (peer --help lists the flags)", err)
	}
	return parsed.Selected().Target.Addr().Interface().(command), nil
}
