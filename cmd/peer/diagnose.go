package main

import (
	"fmt"

	"peermesh/ops/flight"
)

// A diagnoseCmd says what the ranks' last operations come to.
type diagnoseCmd struct {
	Dir  string `arg:"" placeholder:"DIR" help:"Folder with the records of all ranks: what --flight named, or copies from all machines in one."`
	JSON bool   `name:"json" help:"Print it as one JSON object."`
}

// Run prints one sentence, and what each rank did last. That something went wrong is no
// error here: it is what one wants to know.
func (d *diagnoseCmd) Run(p *process) error {
	logs, err := flight.ReadDir(d.Dir)
	if err != nil {
		return usagef("%w", err)
	}
	found, err := flight.Diagnose(logs)
	if err != nil {
		return usagef("%w", err)
	}
	if d.JSON {
		return writeJSONLine(p.stdout, found)
	}
	_, err = fmt.Fprint(p.stdout, found)
	return err
}
