//go:build !race

package trainer

const UnderRace = false
