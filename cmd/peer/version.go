package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// A versionCmd prints what was built, from what, and with what.
type versionCmd struct{}

// Run prints one line.
func (*versionCmd) Run(p *process) error {
	_, err := fmt.Fprintln(p.stdout, version())
	return err
}

// version is the module's version and, in a build from a repository, the
// commit, as the go command has recorded them.
func version() string {
	// go run and go test record less than go build, and go install module@version
	// records no commit: print what there is.
	text := "peer (unknown version)"
	if info, ok := debug.ReadBuildInfo(); ok {
		text = "peer " + info.Main.Version
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				text += " " + s.Value
			}
		}
	}
	return fmt.Sprintf("%s %s %s/%s", text, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
