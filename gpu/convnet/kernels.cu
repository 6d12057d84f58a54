// The layers of package trainer/nn, and two optimisers, for a device; see ../kernel.h.
//
// An element of a result is one thread's, which adds up in the order in which nn's portable
// engine does: so the sums are the same in every run, on every card and on the host, and
// nothing has to be shared between threads. Sums over samples are taken shard by shard, as
// nn/shard.go has it, into parts that fold adds up.
//
// Pointers are 64 bits wide, and all else is a number of 32 or the bits of one, which is how
// the fake driver tells them apart, and calls them all alike. Samples lie one after the
// other; n counts the elements of the result.

#include "../kernel.h"

#define EACH(i, n) for (uint64 i = START; i < n; i += STRIDE)

// ---- forward

// A convolution of planes of h×w, of side k: n is samples × channels × rows × columns.
KERNEL convolve(float32 *y, const float32 *x, const float32 *weight, const float32 *bias,
		uint32 n, uint32 inputs, uint32 channels, uint32 h, uint32 w, uint32 k) {
	uint32 oh = h - k + 1, ow = w - k + 1;
	EACH(i, n) {
		uint32 at = i, col = at % ow, row = (at /= ow) % oh, c = (at /= oh) % channels;
		const float32 *from = x + (uint64)(at / channels) * inputs * h * w + row * w + col;
		const float32 *u = weight + c * inputs * k * k;
		float32 sum = bias[c];
		for (uint32 input = 0; input < inputs; input++, from += h * w)
			for (uint32 ky = 0; ky < k; ky++)
				for (uint32 kx = 0; kx < k; kx++)
					sum += *u++ * from[ky * w + kx];
		y[i] = sum;
	}
}

INLINE float32 greater(float32 a, float32 b) {
	return a != a ? a : b != b ? b : a > b ? a : b > a ? b : __builtin_signbit(a) ? b : a;
}

// The largest of each 2×2 square of planes of h×w, and which of the four it was.
KERNEL pool(float32 *y, uint8 *which, const float32 *z, uint32 n, uint32 h, uint32 w) {
	uint32 oh = h / 2, ow = w / 2;
	EACH(i, n) {
		uint32 at = i, col = at % ow, row = (at /= ow) % oh;
		const float32 *q = z + (uint64)(at / oh) * h * w + 2 * row * w + 2 * col;
		float32 a = q[0], b = q[1], c = q[w], d = q[w + 1], v = greater(greater(a, b), greater(c, d));
		y[i] = v;
		which[i] = bits(v) == bits(a) ? 0 : bits(v) == bits(b) ? 1 : bits(v) == bits(c) ? 2 : 3;
	}
}

KERNEL linear(float32 *y, const float32 *x, const float32 *weight, const float32 *bias, uint32 n, uint32 ins, uint32 outs) {
	EACH(i, n) {
		const float32 *a = x + i / outs * ins, *b = weight + i % outs * ins;
		float32 sum = 0;
		for (uint32 k = 0; k < ins; k++)
			sum += a[k] * b[k];
		y[i] = sum + bias[i % outs];
	}
}

// Element key of a stream of random numbers, SplitMix64: the start of another stream, or 64
// random bits.
INLINE uint64 draw(uint64 stream, uint64 key) {
	uint64 z = stream + (key + 1) * 0x9E3779B97F4A7C15;
	z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
	z = (z ^ z >> 27) * 0x94D049BB133111EB;
	return z ^ z >> 31;
}

// ReLU, and dropout of what has fewer random bits than threshold; 0 is none. Each sample, of
// outs elements, has a stream of its own, and each run of elements 32 bits of it. A NaN stays
// one.
KERNEL activate(float32 *y, uint32 n, uint32 outs, uint32 run, uint32 low, uint32 high, uint32 threshold, uint32 scale) {
	EACH(i, n) {
		float32 v = y[i];
		if (v <= 0)
			v = 0;
		if (threshold) {
			uint32 sample = i / outs, j = i % outs / run;
			uint64 pair = draw(draw((uint64)high << 32 | low, sample), j / 2);
			v = (uint32)(pair >> 32 * (j % 2)) < threshold ? 0 : v * number(scale);
		}
		y[i] = v;
	}
}

// ---- the loss

// The exponential of a number that is not above 0: a power of two, and Taylor's series of
// what is left, within ±½ln 2, of which the 13th term is the last to be seen.
INLINE float64 exponential(float64 x) {
	if (x != x)
		return x;
	if (x < -700)
		return 0;
	int32 k = (int32)(x * 1.4426950408889634 - 0.5);
	float64 r = x - k * 0x1.62e42feep-1 - k * 0x1.a39ef35793c76p-33, y = 1;
	for (int32 i = 13; i > 0; i--)
		y = 1 + y * r / i;
	return y * number64((uint64)(1023 + k) << 52);
}

// The logarithm of a number from 1 on: that of a power of two, and the series of the area
// tangent of what is left, from √½ to √2.
INLINE float64 logarithm(float64 x) {
	if (x != x)
		return x;
	uint64 u;
	__builtin_memcpy(&u, &x, 8);
	int32 k = (int32)(u >> 52) - 1023;
	float64 m = number64((u & 0xFFFFFFFFFFFFF) | (uint64)1023 << 52);
	if (m > 1.4142135623730951)
		m /= 2, k++;
	float64 t = (m - 1) / (m + 1), y = 0;
	for (int32 i = 23; i > 0; i -= 2)
		y = 1.0 / i + t * t * y;
	return k * 0.6931471805599453 + 2 * t * y;
}

// For each of n samples the negative log-likelihood of its label under log_softmax, whether
// the label is where z is largest, and the gradient of the mean over the batch.
KERNEL likelihood(float32 *dz, float64 *loss, uint32 *right, const float32 *z, const uint8 *labels, uint32 n, uint32 classes) {
	EACH(i, n) {
		const float32 *row = z + i * classes;
		uint32 top = 0, label = labels[i];
		for (uint32 j = 1; j < classes; j++)
			if (row[j] > row[top])
				top = j;
		float64 sum = 0;
		for (uint32 j = 0; j < classes; j++)
			sum += exponential((float64)row[j] - (float64)row[top]);
		loss[i] = logarithm(sum) - ((float64)row[label] - (float64)row[top]);
		right[i] = top == label;
		for (uint32 j = 0; j < classes; j++) {
			float64 p = exponential((float64)row[j] - (float64)row[top]) / sum;
			dz[i * classes + j] = (float32)((j == label ? p - 1 : p) / (float64)n);
		}
	}
}

// ---- backward

// ReLU and dropout: what they let nothing through of is a zero in their output y.
KERNEL gate(float32 *dy, const float32 *y, uint32 n, uint32 scale) {
	EACH(i, n)
		dy[i] = bits(y[i]) ? dy[i] * number(scale) : 0;
}

// Each gradient goes to where its maximum came from, and zeros beside it. An odd last row
// or column is not touched.
KERNEL unpool(float32 *dz, const float32 *dy, const uint8 *which, uint32 n, uint32 h, uint32 w) {
	uint32 oh = h / 2, ow = w / 2;
	EACH(i, n) {
		uint32 at = i, col = at % ow, row = (at /= ow) % oh;
		float32 *q = dz + (uint64)(at / oh) * h * w + 2 * row * w + 2 * col;
		for (uint32 j = 0; j < 4; j++)
			q[j / 2 * w + j % 2] = which[i] == j ? dy[i] : 0;
	}
}

// The gradient of a convolution's input: n is samples × inputs × h × w.
KERNEL convolve_back(float32 *dx, const float32 *dz, const float32 *weight,
		uint32 n, uint32 inputs, uint32 channels, uint32 h, uint32 w, uint32 k) {
	uint32 oh = h - k + 1, ow = w - k + 1;
	EACH(i, n) {
		uint32 at = i, col = at % w, row = (at /= w) % h, input = (at /= h) % inputs;
		const float32 *from = dz + (uint64)(at / inputs) * channels * oh * ow;
		float32 sum = 0;
		for (uint32 c = 0; c < channels; c++, from += oh * ow) {
			const float32 *u = weight + (c * inputs + input) * k * k;
			for (uint32 ky = 0; ky < k; ky++)
				for (uint32 kx = 0; kx < k; kx++, u++)
					if (row - ky < oh && col - kx < ow) // below 0 they are large
						sum += *u * from[(row - ky) * ow + col - kx];
		}
		dx[i] = sum;
	}
}

// The samples of a shard, [*lo, result).
INLINE uint32 bounds(uint32 samples, uint32 shards, uint32 s, uint32 *lo) {
	uint32 size = samples / shards, more = samples % shards;
	*lo = s * size + (s < more ? s : more);
	return *lo + size + (s < more);
}

// A shard's part of the gradient of a convolution's weights: n is shards × weights.
KERNEL convolve_weights(float32 *part, const float32 *dz, const float32 *x,
		uint32 n, uint32 samples, uint32 shards, uint32 inputs, uint32 channels, uint32 h, uint32 w, uint32 k) {
	uint32 oh = h - k + 1, ow = w - k + 1, lo;
	EACH(i, n) {
		uint32 at = i, kx = at % k, ky = (at /= k) % k, input = (at /= k) % inputs, c = (at /= inputs) % channels;
		uint32 hi = bounds(samples, shards, at / channels, &lo);
		float32 total = 0;
		for (uint32 s = lo; s < hi; s++) {
			const float32 *a = dz + ((uint64)s * channels + c) * oh * ow;
			const float32 *b = x + ((uint64)s * inputs + input) * h * w + ky * w + kx;
			float32 sum = 0;
			for (uint32 row = 0; row < oh; row++, b += w)
				for (uint32 col = 0; col < ow; col++)
					sum += *a++ * b[col];
			total += sum;
		}
		part[i] = total;
	}
}

// A shard's part of the gradient of a convolution's bias: n is shards × channels. A plane of
// the output's gradient is added up in four chains, as nn does.
KERNEL convolve_bias(float32 *part, const float32 *dy, uint32 n, uint32 samples, uint32 shards, uint32 channels, uint32 plane) {
	uint32 lo;
	EACH(i, n) {
		uint32 hi = bounds(samples, shards, i / channels, &lo);
		float32 total = 0;
		for (uint32 s = lo; s < hi; s++) {
			const float32 *p = dy + ((uint64)s * channels + i % channels) * plane;
			float32 a = 0, b = 0, c = 0, d = 0;
			uint32 j = 0;
			for (; j + 4 <= plane; j += 4)
				a += p[j], b += p[j + 1], c += p[j + 2], d += p[j + 3];
			for (; j < plane; j++)
				a += p[j];
			total += (a + b) + (c + d);
		}
		part[i] = total;
	}
}

// The gradient of a linear layer's input: n is samples × ins.
KERNEL linear_back(float32 *dx, const float32 *dy, const float32 *weight, uint32 n, uint32 ins, uint32 outs) {
	EACH(i, n) {
		const float32 *a = dy + i / ins * outs, *b = weight + i % ins;
		float32 sum = 0;
		for (uint32 o = 0; o < outs; o++, b += ins)
			sum += a[o] * *b;
		dx[i] = sum;
	}
}

// A shard's part of the gradient of a linear layer's weights: n is shards × outs × ins.
KERNEL linear_weights(float32 *part, const float32 *dy, const float32 *x, uint32 n, uint32 samples, uint32 shards, uint32 ins, uint32 outs) {
	uint32 lo;
	EACH(i, n) {
		uint32 at = i, in = at % ins, o = (at /= ins) % outs, hi = bounds(samples, shards, at / outs, &lo);
		float32 sum = 0;
		for (uint32 s = lo; s < hi; s++)
			sum += dy[s * outs + o] * x[(uint64)s * ins + in];
		part[i] = sum;
	}
}

// Likewise of its bias: n is shards × outs.
KERNEL linear_bias(float32 *part, const float32 *dy, uint32 n, uint32 samples, uint32 shards, uint32 outs) {
	uint32 lo;
	EACH(i, n) {
		uint32 hi = bounds(samples, shards, i / outs, &lo);
		float32 sum = 0;
		for (uint32 s = lo; s < hi; s++)
			sum += dy[s * outs + i % outs];
		part[i] = sum;
	}
}

// The shards' parts, n elements each, are added up as a binary tree that folds the upper half
// onto the lower one. The parts are used up.
KERNEL fold(float32 *grad, float32 *part, uint32 n, uint32 shards) {
	EACH(i, n) {
		uint32 half = 1;
		while (half < shards)
			half *= 2;
		for (uint32 left = shards; (half /= 2) > 0; left = half)
			for (uint32 s = 0; s < half && s + half < left; s++)
				part[s * (uint64)n + i] += part[(s + half) * (uint64)n + i];
		grad[i] = part[i];
	}
}

// ---- optimisers, with the arithmetic of package trainer

// What both have: the settings' bits, and the gradient that they make of one.
#define SETTINGS uint32 lr, uint32 decay, uint32 sign
INLINE float32 slope(float32 v, float32 grad, uint32 decay, uint32 sign) {
	float32 g = number(sign) * grad;
	return number(decay) != 0 ? g + number(decay) * v : g;
}

KERNEL sgd(float32 *x, const float32 *grad, float32 *buf, uint32 n, SETTINGS, uint32 momentum, uint32 fresh, uint32 nesterov) {
	float32 m = number(momentum);
	EACH(i, n) {
		float32 v = x[i], g = slope(v, grad[i], decay, sign);
		if (m != 0) {
			float32 b = m * buf[i] + number(fresh) * g;
			buf[i] = b;
			g = nesterov ? g + m * b : b;
		}
		x[i] = v - number(lr) * g;
	}
}

KERNEL adadelta(float32 *x, const float32 *grad, float32 *square, float32 *delta, uint32 n, SETTINGS, uint32 rho, uint32 fresh, uint32 eps) {
	EACH(i, n) {
		float32 v = x[i], g = slope(v, grad[i], decay, sign);
		float32 q = number(rho) * square[i] + number(fresh) * g * g;
		float32 d = root(delta[i] + number(eps)) / root(q + number(eps)) * g;
		square[i] = q;
		delta[i] = number(rho) * delta[i] + number(fresh) * d * d;
		x[i] = v - number(lr) * d;
	}
}
