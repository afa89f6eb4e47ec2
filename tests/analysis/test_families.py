from __future__ import annotations

import pytest

from tracekit.analysis.kernels import family_of

#: Real names, from traces of an H200 and from public ones of other GPUs.
REAL = [
    ("nvjet_sm90_tst_128x128_64x6_2x1_v_bz_bias_TNT", "gemm"),
    ("void cublasLt::splitKreduce_kernel<32, 16, int, __nv_bfloat16>(...)", "gemm"),
    ("void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_bf16_128x256_64x3_tn_align2>(...)", "gemm"),
    ("sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_tilesize32x32x8_stage3_execute_kernel__5x_cublas", "gemm"),
    ("void gemmk1_kernel<int, float, 256, 5, true, false>(...)", "gemm"),
    ("Cijk_Ailk_Bljk_BBS_BH_MT128x128x32_MI32x32x8x1", "gemm"),
    ("cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128x128_4x1x1", "attention"),
    ("fmha_cutlassF_bf16_aligned_32x128_gmem_sm80(PyTorchMemEffAttention::AttentionKernel<...>)", "attention"),
    ("void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 32>>(...)", "attention"),
    ("sm90_xmma_fprop_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc_nhwc_execute_kernel__5x_cudnn", "convolution"),
    ("void cutlass__5x_cudnn::Kernel<cutlass_tensorop_bf16_s16816fprop_optimized_bf16_128x128_32x5>", "convolution"),
    ("void implicit_convolveNd_sgemm<__nv_bfloat16, 3, 128, 6, 7, 3, 3, 5, 1>(...)", "convolution"),
    (
        "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<c10::BFloat16, float>(...)",
        "normalization",
    ),
    ("void at::native::(anonymous namespace)::RowwiseMomentsCUDAKernel<c10::BFloat16>(...)", "normalization"),
    ("void (anonymous namespace)::softmax_warp_forward<float, float, float, 9, false, false>(...)", "normalization"),
    ("void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>(...)", "pointwise"),
    ("void at::native::vectorized_elementwise_kernel<8, at::native::GeluCUDAKernelImpl(...)>", "pointwise"),
    (
        "void at::native::distribution_elementwise_grid_stride_kernel<float, 4, normal_and_transform<>>(...)",
        "pointwise",
    ),
    (
        "void at::native::reduce_kernel<512, 1, ReduceOp<float, MeanOps<float>>>(...)",
        "reduction",
    ),
    ("void at::native::(anonymous namespace)::CatArrayBatchedCopy<at::native::OpaqueType<2u>, 3, 64, 64>(...)", "copy"),
    ("void at::native::elementwise_kernel<128, 2, gpu_kernel_impl_nocast<direct_copy_kernel_cuda(...)>>(...)", "copy"),
    ("void cudnn::engines_precompiled::nchwToNhwcKernel<__nv_bfloat16, __nv_bfloat16, float>(...)", "copy"),
    ("void tensorTransformGeneric<__nv_bfloat16, __nv_bfloat16, float>(cudnnTensorTransformStruct)", "copy"),
    ("triton_red_fused_add_addmm_native_layer_norm_7", "triton"),
    ("triton_poi_fused_convolution_mul_3", "triton"),
    ("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "communication"),
    ("void compute_cuda_kernel<long>(long const*, long const*, long*, long, long)", "other"),
]


@pytest.mark.parametrize(("name", "family"), REAL)
def test_real_kernels_are_told_by_their_names(name: str, family: str) -> None:
    assert family_of(name) == family
