package main

// coresForPinning is how many cores a rank must have to itself for --pin auto: with
// fewer, the threads of its links and of its arithmetic only get in each other's way,
// and the system's scheduler knows better.
const coresForPinning = 2

// shareCores deals out this process's cores to n ranks, neighbours to neighbours; nil
// if each may run anywhere.
func shareCores(pin string, n int) [][]int {
	cores := ownCores()
	least := coresForPinning
	if pin == "always" {
		least = 1
	}
	if pin == "never" || n < 2 || len(cores) < least*n {
		return nil
	}
	shares := make([][]int, n)
	for i := range shares {
		shares[i] = cores[i*len(cores)/n : (i+1)*len(cores)/n]
	}
	return shares
}
