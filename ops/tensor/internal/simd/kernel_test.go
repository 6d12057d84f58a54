package simd

import "testing"

// TestEveryKernelHasAPlace finds kernels that no type has. All are run by other
// tests, which finds those that assembly does not have.
func TestEveryKernelHasAPlace(t *testing.T) {
	var placed [count]bool
	for _, k := range []Kernels{
		Float32, Float64, Float16, BFloat16, Bool,
		Int8, Int16, Int32, Int64, Uint8, Uint16, Uint32, Uint64,
	} {
		for _, one := range []Kernel{k.Sum, k.Product, k.Min, k.Max, k.Quotient, k.Residual, k.And, k.Or, k.Xor} {
			placed[one] = true
		}
	}
	for k, ok := range placed {
		if !ok {
			t.Errorf("kernel %d belongs to no type", k)
		}
	}
}

func TestUsable(t *testing.T) {
	if Kernel(0).Usable() || count.Usable() || Kernel(255).Usable() {
		t.Error("what is no kernel can be used")
	}
	if Float32.Sum.Usable() != available {
		t.Errorf("float32's sum can be used: %v", !available)
	}
}
