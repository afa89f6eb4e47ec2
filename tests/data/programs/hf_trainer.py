"""transformers' Trainer with torch_compile. STEPS"""

import sys
import tempfile

import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

GPU = torch.cuda.is_available()
width, depth, batch, length = (768, 12, 16, 128) if GPU else (32, 2, 2, 16)
config = BertConfig(
    hidden_size=width, num_hidden_layers=depth, num_attention_heads=width // 16, intermediate_size=4 * width
)


class Data(torch.utils.data.Dataset):
    def __len__(self) -> int:
        return 100_000

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        return {"input_ids": torch.randint(1000, (length,)), "labels": torch.tensor(index % 2)}


with tempfile.TemporaryDirectory() as folder:
    arguments = TrainingArguments(
        folder,
        per_device_train_batch_size=batch,
        max_steps=int(sys.argv[1]),
        torch_compile=True,
        report_to=[],
        save_strategy="no",
        logging_steps=100,
        bf16=GPU,
        use_cpu=not GPU,
        disable_tqdm=True,
    )
    Trainer(BertForSequenceClassification(config), arguments, train_dataset=Data()).train()
print("trained")
