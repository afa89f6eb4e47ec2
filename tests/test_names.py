import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracekit.names import encodable, printable, short_kernel_name, template_family

NATIVE = "void at::native::"


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("nvjet_sm90_tst_192x192_64x4_2x1_v_bz_coopB_bias_TNN", "nvjet_sm90_tst_192x192_64x4_2x1_v_bz_coopB_bias_TNN"),
        ("triton_poi_fused_cat_gelu_permute_view_25", "triton_poi_fused_cat_gelu_permute_view_25"),
        ("Memcpy HtoD (Pageable -> Device)", "Memcpy HtoD (Pageable -> Device)"),
        (
            NATIVE
            + "vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul> >(int)",
            "vectorized_elementwise_kernel<CUDAFunctor_add>",
        ),
        (
            NATIVE
            + "elementwise_kernel<128, 2, at::native::gpu_kernel_impl_nocast<at::native::BinaryFunctor<float, float, "
            "float, at::native::binary_internal::MulFunctor<float> > >(at::TensorIteratorBase&)::{lambda(int)#1}>(int)",
            "elementwise_kernel<MulFunctor>",
        ),
        (
            NATIVE + "(anonymous namespace)::RowwiseMomentsCUDAKernel<c10::BFloat16>(long, c10::BFloat16)",
            "RowwiseMomentsCUDAKernel<BFloat16>",
        ),
        ("void splitKreduce_kernel<32, 16, int, float>(int)", "splitKreduce_kernel<int>"),
        ("void cutlass__5x_cudnn::Kernel<cutlass_tensorop_bf16>(cutlass::Params)", "Kernel<cutlass_tensorop_bf16>"),
    ],
)
def test_names_keep_what_tells_kernels_apart(name, short):
    assert short_kernel_name(name) == short


@given(st.text(max_size=400), st.integers(8, 80))
def test_short_names_are_short_and_have_no_control_characters(name, limit):
    short = short_kernel_name(name, limit)
    assert len(short) <= limit
    assert not any(unicodedata.category(each) in ("Cc", "Cf", "Cs") for each in short)


@given(st.text(st.one_of(st.characters(), st.characters(categories=["Cc", "Cf", "Cs", "Zs", "Co"])), max_size=60))
def test_what_steers_a_terminal_or_turns_the_writing_is_replaced_and_nothing_else(text):
    told = printable(text)
    assert len(told) == len(text)
    for was, became in zip(text, told, strict=True):
        assert became == ("\N{REPLACEMENT CHARACTER}" if unicodedata.category(was) in ("Cc", "Cf", "Cs") else was)


@given(st.text(st.characters(exclude_categories=())))
def test_what_is_made_encodable_is_and_other_text_stays(text: str) -> None:
    made = encodable(text)
    assert made.encode().decode() == made
    assert len(made) == len(text)
    assert all(one == other or "\ud800" <= other <= "\udfff" for one, other in zip(made, text, strict=True))


@pytest.mark.parametrize(
    ("kernel", "family"),
    [
        ("triton_tem_fused_addmm_native_layer_norm_t_view_4", "gemm"),
        ("triton_tem_fused__to_copy_bmm_mul_transpose_view_7", "gemm"),
        ("triton_tem_fused__scaled_mm_0", "gemm"),
        ("triton_bmm_2", "gemm"),
        ("triton_tem_fused_convolution_0", "convolution"),
        ("triton_convolution2d_1", "convolution"),
        ("triton_tem_fused_flex_attention_mul_3", "attention"),
        # What fuses the operator's neighbours is no template, and a template that lists no such operator does not say.
        ("triton_red_fused_add_addmm_native_layer_norm_7", None),
        ("triton_tem_fused_zeros_0", None),
        ("nvjet_sm90_tst_64x8_64x16_1x2_h_bz_bias_TNT", None),
    ],
)
def test_a_template_s_name_says_what_inductor_made_of_it(kernel: str, family: str | None):
    assert template_family(kernel) == family
