package main

import (
	"errors"
	"fmt"
	"io"
	"time"

	"peermesh/node"
)

// doctorPatience bounds each of the doctor's dials.
const doctorPatience = 4 * time.Second

// A doctorCmd examines this machine, and the way to a bootstrap peer.
type doctorCmd struct {
	Bootstrap string `placeholder:"ADDR" help:"Multiaddr of a peer to look for, with its /p2p/ID, while it waits for others."`
	Secret    string `placeholder:"FILE" help:"File with the secret of a private network, if it is one."`
	JSON      bool   `name:"json" help:"Print one JSON object for each finding."`
}

// Validate finds what cannot be looked for. Kong calls it.
func (d *doctorCmd) Validate() error {
	if d.Bootstrap == "" {
		return nil
	}
	if _, err := node.ParseAddr(d.Bootstrap); err != nil {
		return fmt.Errorf("--bootstrap %s: %w", d.Bootstrap, err)
	}
	return nil
}

// errUnwell is the end of an examination that found what keeps a peer from working.
var errUnwell = errors.New("what is marked fail keeps a peer from working")

// Run prints what was found, and what to do about it.
func (d *doctorCmd) Run(p *process) error {
	setupLogging(&Common{LogLevel: "error"}, "text")
	v := takeVitals()
	if d.Bootstrap != "" {
		way, err := d.seek(p.ctx)
		if err != nil {
			return err
		}
		v.Bootstrap = way
	}
	return tell(p.stdout, examine(v), d.JSON)
}

// A level is how bad a finding is.
type level string

// The levels.
const (
	fine  level = "ok"
	worse level = "warn" // it works, and not as well as it could
	fatal level = "fail"
)

// A finding is one thing that was looked at.
type finding struct {
	Level level  `json:"level"`
	What  string `json:"what"`
	Found string `json:"found"`
	Mend  string `json:"mend,omitempty"` // the command, or what else to do; empty: nothing
}

// tell prints the findings. Its error is that one of them is fatal.
func tell(w io.Writer, all []finding, asJSON bool) error {
	var unwell error
	for _, f := range all {
		if f.Level == fatal {
			unwell = errUnwell
		}
		var err error
		if asJSON {
			err = writeJSONLine(w, f)
		} else {
			_, err = fmt.Fprintf(w, "%-4s  %-14s %s\n", f.Level, f.What, f.Found)
			if err == nil && f.Mend != "" {
				_, err = fmt.Fprintf(w, "      %-14s → %s\n", "", f.Mend)
			}
		}
		if err != nil {
			return err
		}
	}
	return unwell
}
