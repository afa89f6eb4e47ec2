"""A loop of generation with a static cache, of which each decoded token is compiled. PROMPTS"""

import sys

import torch
from transformers import LlamaConfig, LlamaForCausalLM

GPU = torch.cuda.is_available()
device, width, layers = ("cuda", 2048, 16) if GPU else ("cpu", 32, 2)
config = LlamaConfig(
    vocab_size=1000,
    hidden_size=width,
    intermediate_size=2 * width,
    num_hidden_layers=layers,
    num_attention_heads=width // 16,
    num_key_value_heads=width // 16,
    max_position_embeddings=256,
    eos_token_id=None,
)
model = LlamaForCausalLM(config).to(device, torch.bfloat16 if GPU else torch.float32).eval()
model.forward = torch.compile(model.forward, dynamic=False)

for _ in range(int(sys.argv[1])):
    prompt = torch.randint(1000, (1, 8), device=device)
    model.generate(
        prompt,
        attention_mask=torch.ones_like(prompt),
        max_new_tokens=24,
        do_sample=False,
        cache_implementation="static",
        disable_compile=True,
        pad_token_id=0,
    )
print("generated")
