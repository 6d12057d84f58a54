package layers

import "fmt"

// A TransformerConfig describes a language model. Its samples are Context numbers
// below Vocabulary; for each, it tells which comes next.
type TransformerConfig struct {
	Vocabulary int     // zero: 256, bytes
	Width      int     // features of a position; zero: 128
	Heads      int     // zero: 4
	Blocks     int     // zero: 2
	Hidden     int     // features between the two linear layers of a block; zero: 4·Width
	Dropout    float64 // after the embeddings and on what each block adds
	Tied       bool    // the head uses the embedding's table
	Exact      bool    // GELU without its approximation
}

// NewTransformer is a decoder as GPT-2 has it: embeddings of bytes and of positions,
// blocks that normalise first, a last normalisation, a head without bias. Its
// parameters have PyTorch's names for an Embedding embed, an Embedding position, a
// TransformerEncoder named encoder, of layers with norm_first and GELU and with a
// norm, and a Linear head: "encoder.layers.0.self_attn.in_proj_weight".
//
// Initial values are PyTorch's, but for the embeddings: normal with a deviation of
// 0.02, as GPT-2's, lest they drown what the blocks add.
func NewTransformer(c TransformerConfig) (Layer, error) {
	for _, s := range []struct {
		v         *int
		byDefault int
		most      int
	}{
		{&c.Vocabulary, 256, 1 << 24}, {&c.Width, 128, MaxWidth}, {&c.Heads, 4, MaxWidth}, {&c.Blocks, 2, MaxBlocks},
	} {
		if *s.v == 0 {
			*s.v = s.byDefault
		}
		if *s.v < 1 || *s.v > s.most {
			return nil, fmt.Errorf("layers: Transformer: %+v: want at most %d for %d", c, s.most, *s.v)
		}
	}
	if c.Hidden == 0 {
		c.Hidden = 4 * c.Width
	}
	const deviation = 0.02
	embed := &Embedding{Rows: c.Vocabulary, Width: c.Width, Deviation: deviation}
	net := Sequential{
		Named{"embed", embed},
		Named{"position", &Position{Deviation: deviation}},
		&Dropout{P: c.Dropout},
	}
	var blocks Sequential
	for range c.Blocks {
		blocks = append(blocks, block(c))
	}
	head := &Linear{Out: c.Vocabulary, NoBias: true}
	if c.Tied {
		head.Tied = embed
	}
	return append(net,
		Named{"encoder", Sequential{Named{"layers", blocks}, Named{"norm", &LayerNorm{}}}},
		Named{"head", head},
	), nil
}

// block is torch.nn.TransformerEncoderLayer with norm_first.
func block(c TransformerConfig) Layer {
	return Sequential{
		Named{"", &Residual{Body: Sequential{
			Named{"norm1", &LayerNorm{}},
			Named{"self_attn", &SelfAttention{Heads: c.Heads}},
			&Dropout{P: c.Dropout},
		}}},
		Named{"", &Residual{Body: Sequential{
			Named{"norm2", &LayerNorm{}},
			Named{"linear1", &Linear{Out: c.Hidden}},
			&GELU{Tanh: !c.Exact},
			Named{"linear2", &Linear{Out: c.Width}},
			&Dropout{P: c.Dropout},
		}}},
	}
}
