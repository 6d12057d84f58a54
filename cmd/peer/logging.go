package main

import (
	"os"

	"github.com/ipfs/go-log/v2"
)

// logger is the command's own.
var logger = log.Logger("peer")

// ours are the log's subsystems that belong to Peermesh. libp2p has dozens
// more; of those only errors are shown, unless everything is asked for.
var ours = []string{"peer", "node", "mesh", "ops", "trainer"}

// setupLogging sends the log to stderr, in the format and from the level that
// the flags say. GOLOG_LOG_LEVEL overrides the levels for those who know it.
func setupLogging(flags *Common, format string) {
	level, err := log.Parse(flags.LogLevel) // the flag's enum allows no other
	if err != nil || flags.Verbose {
		level = log.LevelDebug
	}
	c := log.GetConfig() // as the environment has it
	c.Stderr, c.Stdout = true, false
	c.Format = log.PlaintextOutput
	if format == "json" {
		c.Format = log.JSONOutput
	}
	if os.Getenv("GOLOG_LOG_LEVEL") == "" {
		c.Level = log.LevelError
		c.SubsystemLevels = make(map[string]log.LogLevel)
		for _, name := range ours {
			c.SubsystemLevels[name] = level
		}
		// The swarm calls it an error of its listener when a node that is being closed
		// stops listening. What does go wrong there comes back from node.Start.
		c.SubsystemLevels["swarm2"] = log.LevelFatal
	}
	log.SetupLogging(c)
}
