//go:build !race

package trainer_test

const underRace = false
