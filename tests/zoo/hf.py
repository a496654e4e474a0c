"""Architectures of the `transformers` package, built from small configurations with seeded random weights.

No weights are downloaded. Attention is the plain ("eager") form unless a name says sdpa. Models with a cache take
the past keys and values as inputs and give the grown ones as outputs, one pair a layer.
"""
import numpy as np
import torch
from torch import nn

from common import Spec, constant, floats, ids, mask

WORDS, DIM, HEADS, INNER, LAYERS = 160, 48, 4, 96, 2
TEXT = dict(vocab_size=WORDS, hidden_size=DIM, num_hidden_layers=LAYERS, num_attention_heads=HEADS,
            intermediate_size=INNER, max_position_embeddings=64)
VISION = dict(hidden_size=DIM, num_hidden_layers=LAYERS, num_attention_heads=HEADS, intermediate_size=INNER,
              image_size=32, patch_size=8)


class Named(nn.Module):
    """Passes inputs by keyword and returns the named fields of the result, so that every model looks alike."""

    def __init__(self, model, inputs, outputs):
        super().__init__()
        self.model, self.inputs, self.outputs = model, inputs, outputs

    def forward(self, *tensors):
        result = self.model(**dict(zip(self.inputs, tensors)), return_dict=True, **self.fixed())
        return tuple(getattr(result, name) for name in self.outputs)

    def fixed(self):
        return {"use_cache": False} if getattr(self.model.config, "use_cache", None) else {}


def named(model, config, inputs, outputs, attention="eager", **settings):
    """A factory for Spec.build: transformers is imported only when the model is made."""
    def build():
        import transformers
        made = getattr(transformers, config)(**settings)
        made._attn_implementation = attention
        return Named(getattr(transformers, model)(made), inputs, outputs)
    return build


class Cached(nn.Module):
    """One step of a decoder: past keys and values in, logits and grown keys and values out."""

    def __init__(self, model, layers, positions):
        super().__init__()
        self.model, self.layers, self.positions = model, layers, positions

    def forward(self, *tensors):
        from transformers import DynamicCache
        input_ids, attention_mask, *rest = tensors
        extra = {"position_ids": rest[0]} if self.positions else {}
        past = rest[1:] if self.positions else rest
        cache = DynamicCache()
        for i in range(self.layers):
            cache.update(past[2 * i], past[2 * i + 1], i)
        result = self.model(input_ids=input_ids, attention_mask=attention_mask, past_key_values=cache,
                            use_cache=True, return_dict=True, **extra)
        grown = [t for layer in result.past_key_values.layers for t in (layer.keys, layer.values)]
        return (result.logits, *grown)


def cached(name, model, config, settings, kv_heads, head_dim, dynamic=True, positions=True, **spec):
    """The Spec of a decoder with a cache; with dynamic, past and new lengths are symbolic."""
    def build():
        import transformers
        made = getattr(transformers, config)(**settings)
        made._attn_implementation = "eager"
        return Cached(getattr(transformers, model)(made), LAYERS, positions)

    def case(past, new):
        inputs = [ids(WORDS, 1, new), constant(np.ones((1, past + new), np.int64))]
        inputs += [constant(np.arange(past, past + new, dtype=np.int64)[None])] * positions
        return inputs + [floats(1, kv_heads, past, head_dim)] * (2 * LAYERS)
    pairs = [f"{kind}.{i}" for i in range(LAYERS) for kind in ("key", "value")]
    inputs = ["input_ids", "attention_mask"] + ["position_ids"] * positions + [f"past_{p}" for p in pairs]
    axes = {"input_ids": {1: "new"}, "attention_mask": {1: "total"}, "position_ids": {1: "new"}}
    axes.update({f"past_{p}": {2: "past"} for p in pairs})
    return Spec(name, build, [case(11, 3), case(7, 2)] if dynamic else [case(11, 1)], inputs=inputs,
                outputs=["logits"] + [f"present_{p}" for p in pairs],
                dynamic={n: axes[n] for n in inputs} if dynamic else {}, source=f"transformers {model}",
                dynamo=True, opset=18, needs="transformers", **spec)


def text(name, model, config, outputs=("logits",), masked=True, cases=((2, 9),), attention="eager", settings=None,
         build=None, **spec):
    """A model over token ids, with an attention mask unless masked is False."""
    inputs = ["input_ids"] + ["attention_mask"] * masked
    made = build or named(model, config, inputs, outputs, attention, **(TEXT if settings is None else settings))
    drawn = [[ids(WORDS, b, n, low=3)] + [mask(b, n, [n - 2 * i for i in range(b)])] * masked for b, n in cases]
    dynamic = {i: {0: "batch", 1: "length"} for i in inputs} if len(cases) > 1 else {}
    return Spec(name, made, drawn, inputs=inputs, outputs=list(outputs), dynamic=dynamic,
                source=f"transformers {model}", needs="transformers", **spec)


def vision(name, model, config, outputs=("logits",), size=32, batch=1, settings=None, **spec):
    return Spec(name, named(model, config, ["pixel_values"], outputs, **(VISION if settings is None else settings)),
                [[floats(batch, 3, size, size)]], inputs=["pixel_values"], outputs=list(outputs),
                source=f"transformers {model}", needs="transformers", **spec)


def audio(name, model, config, outputs, samples, settings, **spec):
    return Spec(name, named(model, config, ["input_values"], outputs, **settings), [[floats(1, samples)]],
                inputs=["input_values"], outputs=list(outputs), source=f"transformers {model}",
                needs="transformers", **spec)


def decoder(words, **more):
    """Settings of Llama and its relatives: two key/value heads for four query heads."""
    return dict(TEXT, num_key_value_heads=2, head_dim=12, pad_token_id=0, **more) | dict(vocab_size=words)


GPT2 = dict(vocab_size=WORDS, n_embd=DIM, n_layer=LAYERS, n_head=HEADS, n_positions=64)
DISTIL = dict(vocab_size=WORDS, dim=DIM, n_layers=LAYERS, n_heads=HEADS, hidden_dim=INNER, max_position_embeddings=64)
OPT = dict(vocab_size=WORDS, hidden_size=DIM, num_hidden_layers=LAYERS, num_attention_heads=HEADS, ffn_dim=INNER,
           max_position_embeddings=64, word_embed_proj_dim=DIM, pad_token_id=1)
T5 = dict(vocab_size=WORDS, d_model=DIM, d_kv=12, d_ff=INNER, num_layers=LAYERS, num_heads=HEADS,
          feed_forward_proj="gated-gelu", decoder_start_token_id=0)
BART = dict(vocab_size=WORDS, d_model=DIM, encoder_layers=1, decoder_layers=1, encoder_attention_heads=HEADS,
            decoder_attention_heads=HEADS, encoder_ffn_dim=INNER, decoder_ffn_dim=INNER, max_position_embeddings=64,
            decoder_start_token_id=2)
WHISPER = dict(vocab_size=WORDS, d_model=DIM, encoder_layers=1, decoder_layers=1, encoder_attention_heads=HEADS,
               decoder_attention_heads=HEADS, encoder_ffn_dim=INNER, decoder_ffn_dim=INNER, num_mel_bins=20,
               max_source_positions=40, max_target_positions=32, pad_token_id=0, bos_token_id=1, eos_token_id=2,
               decoder_start_token_id=1)
WAV2VEC = dict(vocab_size=32, hidden_size=DIM, num_hidden_layers=LAYERS, num_attention_heads=HEADS,
               intermediate_size=INNER, conv_dim=(32, 32, 32), conv_stride=(5, 2, 2), conv_kernel=(10, 3, 3),
               num_feat_extract_layers=3, num_conv_pos_embeddings=16, num_conv_pos_embedding_groups=4,
               apply_spec_augment=False)
WHISPER_INPUTS = ["input_features", "decoder_input_ids"]


def part(config, settings, model, which, inputs, outputs):
    """An encoder or decoder taken out of a larger model."""
    def build():
        import transformers
        made = getattr(transformers, config)(**settings)
        made._attn_implementation = "eager"
        whole = getattr(transformers, model)(made)
        return Named(getattr(whole, f"get_{which}")(), inputs, outputs)
    return build


def t5_decoder():
    return part("T5Config", T5, "T5ForConditionalGeneration", "decoder",
                ["input_ids", "encoder_hidden_states"], ["last_hidden_state"])


SPECS = [
    text("bert", "BertForSequenceClassification", "BertConfig", opset=13),
    text("bert_op11", "BertModel", "BertConfig", outputs=("last_hidden_state", "pooler_output"), opset=11),
    text("bert_dynamo", "BertForMaskedLM", "BertConfig", cases=((2, 9), (3, 14)), dynamo=True, opset=18),
    text("bert_unoptimised", "BertModel", "BertConfig", outputs=("last_hidden_state", "pooler_output"), dynamo=True,
         opset=18, options={"optimize": False}),
    text("bert_sdpa_fp16", "BertForSequenceClassification", "BertConfig", attention="sdpa", half=True, dynamo=True,
         opset=18),
    text("distilbert", "DistilBertForSequenceClassification", "DistilBertConfig", settings=DISTIL, opset=13),
    text("roberta", "RobertaForTokenClassification", "RobertaConfig", settings=dict(TEXT, pad_token_id=1), opset=17),
    text("albert", "AlbertForSequenceClassification", "AlbertConfig", settings=dict(TEXT, embedding_size=24), opset=13),
    text("electra_dynamo", "ElectraForTokenClassification", "ElectraConfig", settings=dict(TEXT, embedding_size=24),
         dynamo=True, opset=20),
    text("mobilebert", "MobileBertForSequenceClassification", "MobileBertConfig", settings=dict(
        vocab_size=WORDS, hidden_size=64, num_hidden_layers=LAYERS, num_attention_heads=HEADS, intermediate_size=64,
        embedding_size=32, intra_bottleneck_size=32, max_position_embeddings=64), opset=13),
    text("squeezebert", "SqueezeBertForSequenceClassification", "SqueezeBertConfig",
         settings=dict(TEXT, embedding_size=DIM), opset=13),
    text("deberta_v2_dynamo", "DebertaV2ForSequenceClassification", "DebertaV2Config", settings=dict(
        TEXT, relative_attention=True, pos_att_type=["p2c", "c2p"], position_buckets=8, norm_rel_ebd="layer_norm",
        share_att_key=True, max_relative_positions=16), dynamo=True, opset=18),
    text("gpt2_sdpa", "GPT2LMHeadModel", "GPT2Config", settings=GPT2, attention="sdpa", opset=18, dynamo=True),
    text("gpt2_script", "GPT2LMHeadModel", "GPT2Config", settings=GPT2, opset=13),
    cached("gpt2_kv", "GPT2LMHeadModel", "GPT2Config", GPT2, HEADS, 12),
    text("opt", "OPTForCausalLM", "OPTConfig", settings=OPT, dynamo=True, opset=18),
    text("bloom", "BloomForCausalLM", "BloomConfig", settings=dict(
        vocab_size=WORDS, hidden_size=DIM, n_layer=LAYERS, n_head=HEADS), dynamo=True, opset=18),
    text("gpt_neox", "GPTNeoXForCausalLM", "GPTNeoXConfig", settings=TEXT, dynamo=True, opset=18),
    text("llama", "LlamaForCausalLM", "LlamaConfig", settings=decoder(WORDS), cases=((1, 8), (2, 12)), dynamo=True,
         opset=18),
    text("llama_op23", "LlamaForCausalLM", "LlamaConfig", settings=decoder(WORDS), attention="sdpa", dynamo=True,
         opset=23),
    text("llama_script", "LlamaForCausalLM", "LlamaConfig", settings=decoder(WORDS), opset=17),
    cached("llama_kv", "LlamaForCausalLM", "LlamaConfig", decoder(WORDS), 2, 12),
    cached("llama_kv_fixed", "LlamaForCausalLM", "LlamaConfig", decoder(WORDS), 2, 12, dynamic=False),
    cached("llama_kv_fp16", "LlamaForCausalLM", "LlamaConfig", decoder(WORDS), 2, 12, dynamic=False, half=True),
    text("qwen2", "Qwen2ForCausalLM", "Qwen2Config", settings=decoder(WORDS), dynamo=True, opset=18),
    cached("qwen3_kv", "Qwen3ForCausalLM", "Qwen3Config", decoder(WORDS), 2, 12),
    text("mistral", "MistralForCausalLM", "MistralConfig", settings=decoder(WORDS, sliding_window=4), dynamo=True,
         opset=18),
    text("gemma2", "Gemma2ForCausalLM", "Gemma2Config", settings=decoder(WORDS, sliding_window=4), dynamo=True,
         opset=20),
    text("phi", "PhiForCausalLM", "PhiConfig", settings=dict(TEXT, pad_token_id=0), dynamo=True, opset=18),
    text("t5_encoder", "T5EncoderModel", "T5Config", outputs=("last_hidden_state",), settings=T5, opset=13),
    text("t5_encoder_dynamo", "T5EncoderModel", "T5Config", outputs=("last_hidden_state",), settings=T5, dynamo=True,
         opset=18),
    Spec("t5_decoder", t5_decoder(), [[ids(WORDS, 2, 6), floats(2, 9, DIM)]],
         inputs=["input_ids", "encoder_hidden_states"], outputs=["last_hidden_state"],
         source="transformers T5ForConditionalGeneration decoder", needs="transformers", dynamo=True, opset=18),
    Spec("bart", named("BartForConditionalGeneration", "BartConfig", ["input_ids", "decoder_input_ids"], ["logits"],
                       **BART), [[ids(WORDS, 2, 9), ids(WORDS, 2, 5)]], inputs=["input_ids", "decoder_input_ids"],
         outputs=["logits"], source="transformers BartForConditionalGeneration", needs="transformers", dynamo=True,
         opset=18),
    Spec("whisper_encoder", part("WhisperConfig", WHISPER, "WhisperForConditionalGeneration", "encoder",
                                 ["input_features"], ["last_hidden_state"]), [[floats(1, 20, 80)]],
         inputs=["input_features"], outputs=["last_hidden_state"], source="transformers Whisper encoder",
         needs="transformers", opset=17),
    Spec("whisper", named("WhisperForConditionalGeneration", "WhisperConfig", WHISPER_INPUTS, ["logits"], **WHISPER),
         [[floats(1, 20, 80), ids(WORDS, 1, 6)]], inputs=WHISPER_INPUTS, outputs=["logits"],
         source="transformers WhisperForConditionalGeneration", needs="transformers", dynamo=True, opset=18),
    text("clip_text", "CLIPTextModelWithProjection", "CLIPTextConfig", outputs=("text_embeds",), settings=dict(
        TEXT, projection_dim=32, eos_token_id=2), dynamo=True, opset=18),
    vision("clip_vision", "CLIPVisionModelWithProjection", "CLIPVisionConfig", outputs=("image_embeds",),
           settings=dict(VISION, projection_dim=32), opset=17),
    vision("hf_vit", "ViTForImageClassification", "ViTConfig", opset=17),
    vision("deit_dynamo", "DeiTForImageClassification", "DeiTConfig", dynamo=True, opset=18),
    vision("dinov2", "Dinov2Model", "Dinov2Config", outputs=("last_hidden_state",), settings=dict(
        hidden_size=DIM, num_hidden_layers=LAYERS, num_attention_heads=HEADS, image_size=32, patch_size=8), opset=17),
    vision("beit", "BeitForImageClassification", "BeitConfig", settings=dict(
        VISION, use_relative_position_bias=True, use_absolute_position_embeddings=True), dynamo=True, opset=18),
    vision("hf_swin", "SwinForImageClassification", "SwinConfig", size=32, settings=dict(
        image_size=32, patch_size=2, embed_dim=24, depths=[2, 2], num_heads=[2, 4], window_size=4), opset=17),
    vision("hf_convnext", "ConvNextForImageClassification", "ConvNextConfig", size=64, settings=dict(
        hidden_sizes=[16, 32, 48, 64], depths=[1, 1, 2, 1]), opset=13),
    vision("hf_resnet", "ResNetForImageClassification", "ResNetConfig", size=64, settings=dict(
        embedding_size=16, hidden_sizes=[32, 64], depths=[2, 2]), opset=11),
    vision("hf_regnet", "RegNetForImageClassification", "RegNetConfig", size=64, settings=dict(
        embedding_size=16, hidden_sizes=[32, 64], depths=[1, 2], groups_width=16), dynamo=True, opset=18),
    vision("hf_mobilenet_v1", "MobileNetV1ForImageClassification", "MobileNetV1Config", size=64, settings=dict(
        depth_multiplier=0.25, image_size=64), opset=13),
    vision("hf_mobilenet_v2", "MobileNetV2ForSemanticSegmentation", "MobileNetV2Config", size=64, batch=2, settings=dict(
        depth_multiplier=0.25, image_size=64), opset=17),
    vision("hf_efficientnet", "EfficientNetForImageClassification", "EfficientNetConfig", size=64, settings=dict(
        width_coefficient=0.25, depth_coefficient=0.3, hidden_dim=320, image_size=64), opset=13),
    vision("segformer", "SegformerForSemanticSegmentation", "SegformerConfig", size=64, settings=dict(
        hidden_sizes=[16, 24, 32, 48], depths=[1, 1, 1, 1], num_attention_heads=[1, 2, 2, 4],
        decoder_hidden_size=32), opset=17),
    vision("hf_mobilevit", "MobileViTForImageClassification", "MobileViTConfig", size=64, settings=dict(
        image_size=64, hidden_sizes=[24, 32, 40], neck_hidden_sizes=[8, 8, 16, 16, 24, 32, 64],
        num_attention_heads=2), dynamo=True, opset=18),
    vision("levit", "LevitForImageClassification", "LevitConfig", size=64, batch=2, settings=dict(
        image_size=64, hidden_sizes=[32, 48, 64], num_attention_heads=[2, 3, 4], depths=[1, 1, 1],
        key_dim=[8, 8, 8]), opset=13),
    vision("poolformer", "PoolFormerForImageClassification", "PoolFormerConfig", size=64, settings=dict(
        hidden_sizes=[16, 24, 32, 48], depths=[1, 1, 1, 1]), opset=17),
    vision("pvt", "PvtForImageClassification", "PvtConfig", size=64, settings=dict(
        image_size=64, hidden_sizes=[16, 24, 32, 48], depths=[1, 1, 1, 1], num_attention_heads=[1, 2, 2, 4]), opset=17),
    vision("yolos", "YolosForObjectDetection", "YolosConfig", outputs=("logits", "pred_boxes"), settings=dict(
        VISION, image_size=[32, 32], num_detection_tokens=6), opset=17),
    vision("dpt_dynamo", "DPTForDepthEstimation", "DPTConfig", outputs=("predicted_depth",), settings=dict(
        hidden_size=DIM, num_hidden_layers=4, num_attention_heads=HEADS, intermediate_size=INNER, image_size=32,
        patch_size=8, backbone_out_indices=[0, 1, 2, 3], neck_hidden_sizes=[16, 24, 32, 48], fusion_hidden_size=24,
        is_hybrid=False), dynamo=True, opset=18),
    vision("swin2sr", "Swin2SRForImageSuperResolution", "Swin2SRConfig", outputs=("reconstruction",), size=16,
           settings=dict(image_size=16, embed_dim=24, depths=[2], num_heads=[2], window_size=4, upscale=2), opset=17),
    audio("wav2vec2", "Wav2Vec2ForCTC", "Wav2Vec2Config", ("logits",), 2000, WAV2VEC, opset=17),
    audio("hubert_dynamo", "HubertForCTC", "HubertConfig", ("logits",), 2000, dict(
        WAV2VEC, feat_extract_norm="layer", do_stable_layer_norm=True), dynamo=True, opset=18),
]
