//go:build race

package main

// underRace is whether the race detector is on, which makes a step ten times as slow: then what
// would run no other code is left out.
const underRace = true
