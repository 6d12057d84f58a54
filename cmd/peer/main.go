package main

import (
	"context"
	"fmt"
	"io"
	"os"
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// A process is what a command gets of the world outside: when to stop, and
// where to write. Results go to stdout, everything else to stderr.
type process struct {
	ctx            context.Context
	stdout, stderr io.Writer
}

// run is one life of the program: the command line in, the exit status out.
func run(args []string, stdout, stderr io.Writer) int {
	ctx, stop := interruptible(context.Background(), stderr)
	defer stop()
	command, err := parse(args, stdout)
	if err == nil && command != nil {
		err = command.Run(&process{ctx, stdout, stderr})
	}
	if err != nil {
		fmt.Fprintln(stderr, oneLine(remedied(err)))
	}
	return exitStatus(err)
}
