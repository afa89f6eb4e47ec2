"""Whole analyses: of the real traces, whose figures were worked out independently, and of small ones made by hand."""

from pathlib import Path

import pytest
from tests.traces import (
    DATA,
    Json,
    analyze,
    launched,
    make_call,
    make_copy,
    make_kernel,
    make_op,
    make_span,
    make_trace,
    recording,
)

from tracekit.analysis import window as analysis_window
from tracekit.analysis.kernels import family_of
from tracekit.analysis.window import Scope, find_scope
from tracekit.errors import TracekitError
from tracekit.tracefile.read import read_trace

#: kernels, launches, graph launches, busy us, span us. Busy and span were computed from the files' decimal text with
#: Python's `decimal`, so they are exact. Added up as doubles, whose ends are rounded by up to 0.5 ns, busy would be
#: 127288.97 for flux_eager and 97692.51 for flux_default.
WORKED = {
    "flux_eager": (6026, 6026, 0, 127288.991, 208653.197),
    "flux_default": (2390, 2390, 0, 97692.496, 105065.325),
    "flux_reduce-overhead": (2390, 362, 2, 97829.310, 103459.713),
    "vit_eager": (306, 306, 0, 1411.063, 9890.014),
    "vit_default": (400, 400, 0, 1633.066, 9286.659),
    "vit_reduce-overhead": (402, 4, 2, 1661.568, 2578.112),
}


@pytest.mark.parametrize("name", WORKED)
def test_the_worked_figures_come_out_exactly(name: str) -> None:
    kernels, launches, graph_launches, busy_us, span_us = WORKED[name]
    found = analyze(read_trace(recording(name)))
    assert found.window.kind == "whole"
    assert found.kernels.count == kernels
    assert (found.launches.count, found.launches.graph_launches) == (launches, graph_launches)
    assert found.launches.unlinked_kernels == 0
    assert found.gpu.busy_us == pytest.approx(busy_us, abs=1e-6)
    assert found.gpu.span_us == pytest.approx(span_us, abs=1e-6)


def test_spans_named_by_a_pattern_become_steps() -> None:
    found = analyze(read_trace(DATA / "vit_eager.json.zst"), window=r"tracekit\.iteration#\d+")
    assert (found.window.kind, found.window.steps) == ("span", 2)
    assert [step.kernels for step in found.steps] == [153, 153]
    assert sum(step.wall_us for step in found.steps) == pytest.approx(found.gpu.span_us)
    assert sum(step.busy_us or 0 for step in found.steps) == pytest.approx(found.gpu.busy_us)


def test_only_calls_that_started_a_kernel_are_launches_and_a_graph_launch_starts_many(tmp_path: Path) -> None:
    events = [
        make_call(0, 5, name="cudaGraphLaunch", correlation=1),
        *(make_kernel(10 + i, 10.5 + i, correlation=1) for i in range(4)),
        make_call(6, 7, name="some_future_launch_api", correlation=2, category="cuda_driver"),
        make_kernel(20, 21, correlation=2),
        make_call(7, 8, name="cudaStreamIsCapturing", correlation=3),
        make_call(8, 9, name="cudaMemcpyAsync", correlation=4),
        make_copy(22, 23, correlation=4),
        make_kernel(24, 25, correlation=999),
    ]
    launches = analyze(make_trace(tmp_path, events)).launches
    assert (launches.count, launches.graph_launches, launches.kernels_in_graphs) == (2, 1, 4)
    assert launches.unlinked_kernels == 1


def test_kernels_under_a_microsecond_keep_their_length(tmp_path: Path) -> None:
    found = analyze(make_trace(tmp_path, [make_kernel(i, i + 0.333) for i in range(3)]))
    assert found.kernels.total_us == pytest.approx(0.999)
    assert found.kernels.short_count == 3


def test_our_steps_come_before_the_profiler_s(tmp_path: Path) -> None:
    events = [
        make_span(0, 100, name="ProfilerStep#7"),
        make_span(10, 20, name="tracekit.step#0"),
        *launched(11, 1, 1),
    ]
    assert analyze(make_trace(tmp_path, events)).window.span_us == 10
    foreign = [event for event in events if event["name"] != "tracekit.step#0"]
    assert analyze(make_trace(tmp_path, foreign)).window.span_us == 100


def test_a_span_that_is_not_there_lists_those_that_are(tmp_path: Path) -> None:
    trace = make_trace(tmp_path, [make_kernel(0, 1), make_span(0, 1, name="training step")])
    with pytest.raises(TracekitError, match=r"no span .* 'decode', .*: it has training step"):
        analyze(trace, window="decode")
    with pytest.raises(TracekitError, match=r"--window '\.\*training\.\*' matches training step"):
        analyze(trace, window="training")
    with pytest.raises(TracekitError, match="--window whole"):
        analyze(trace, window="steps")
    with pytest.raises(TracekitError, match=r"--window .*regular expression"):
        analyze(trace, window="(")


def test_a_trace_without_gpu_activity_says_why_that_may_be(tmp_path: Path) -> None:
    with pytest.raises(TracekitError, match="pass --cpu"):
        analyze(make_trace(tmp_path, [make_op(0, 1)]))
    with pytest.raises(TracekitError, match="CUPTI permission"):
        analyze(make_trace(tmp_path, [make_op(0, 1), make_call(0, 1)]))


def test_a_cpu_recording_has_operators_and_no_gpu_figures(tmp_path: Path) -> None:
    events = [
        make_span(0, 100),
        make_op(10, 50, name="aten::linear"),
        make_op(20, 50, name="aten::addmm"),
        make_op(60, 80, name="graph_0_cpp_fused_add_mul_1"),
        make_op(85, 90, name="graph_3_cpp_fused_add_mul_1"),
        make_op(200, 300, name="aten::after_the_step"),
    ]
    found = analyze(make_trace(tmp_path, events, tracekit={"device": "cpu"}))
    assert (found.gpu, found.kernels, found.launches, found.idle, found.copies) == (None, None, None, None, None)
    assert {op.name: (op.count, op.self_us) for op in found.cpu.top} == {
        "aten::addmm": (1, 30),
        "cpp_fused_add_mul_1": (2, 25),
        "aten::linear": (1, 10),
    }
    assert (found.cpu.fused_count, found.cpu.fused_us, found.cpu.span_us) == (2, 25, 100)
    assert [(step.wall_us, step.busy_us, step.kernels) for step in found.steps] == [(100, None, None)]


def test_what_calls_compiled_code_is_no_operator(tmp_path: Path) -> None:
    around = ("Torch-Compiled Region: 0/0", "CompiledFunction", "## Call CompiledFxGraph abc ##")
    events = [
        make_span(0, 100),
        make_op(2, 6, name="TorchDynamo Cache Lookup"),
        *(make_op(10 + 5 * depth, 90 - 5 * depth, name=name) for depth, name in enumerate(around)),
        make_op(11, 13, name="Pregraph bytecode"),
        make_op(30, 40, name="aten::mm"),
        make_op(50, 70, name="graph_0_cpp_fused_add_0"),
        make_op(92, 95, name="CompiledFunctionSomethingElse"),
    ]
    cpu = analyze(make_trace(tmp_path, events, tracekit={"device": "cpu"})).cpu
    assert cpu is not None
    assert {op.name: op.self_us for op in cpu.top} == {
        "cpp_fused_add_0": 20,
        "aten::mm": 10,
        "CompiledFunctionSomethingElse": 3,
    }
    assert (cpu.operator_count, cpu.operator_us, cpu.compiled_wrapper_us) == (3, 33, 4 + 80 - 30)


@pytest.mark.parametrize(
    ("ran", "about", "fused"),
    [
        (["Torch-Compiled Region: 0/0"], {}, None),
        (["Torch-Compiled Region: 0/0"], {"form": "compiled"}, 0),
        (["Torch-Compiled Region: 0/0"], {"form": "compiled", "program": True}, None),
        (["Torch-Compiled Region: 0/0", "graph_0_cpp_fused_add_0"], {}, 1),
        ([], {}, 0),
    ],
)
def test_compiled_code_whose_kernels_record_nothing_is_not_taken_for_none(
    tmp_path: Path, ran: list[str], about: dict[str, object], fused: int | None
) -> None:
    events = [make_op(10, 50, name="aten::linear"), *(make_op(60, 80, name=name) for name in ran)]
    cpu = analyze(make_trace(tmp_path, events, tracekit={"device": "cpu", **about})).cpu
    assert cpu is not None
    assert cpu.fused_count == fused
    assert (cpu.fused_us is None) == (fused is None)


def test_memory_is_none_unless_it_was_recorded(tmp_path: Path) -> None:
    assert analyze(make_trace(tmp_path, [make_kernel(0, 1)])).memory is None
    allocation = {"ph": "i", "name": "[memory]", "ts": 0, "args": {"Device Type": 1, "Total Allocated": 4096}}
    on_the_host = {"ph": "i", "name": "[memory]", "ts": 0, "args": {"Device Type": 0, "Total Allocated": 9999}}
    memory = analyze(make_trace(tmp_path, [make_kernel(0, 1), allocation, on_the_host])).memory
    assert memory is not None
    assert (memory.peak_allocated_bytes, memory.allocation_count) == (4096, 1)


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
    ("void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float>(...)", "normalization"),
    ("void at::native::(anonymous namespace)::RowwiseMomentsCUDAKernel<c10::BFloat16>(...)", "normalization"),
    ("void (anonymous namespace)::softmax_warp_forward<float, float, float, 9, false, false>(...)", "normalization"),
    ("void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>(...)", "pointwise"),
    ("void at::native::vectorized_elementwise_kernel<8, at::native::GeluCUDAKernelImpl(...)>", "pointwise"),
    ("void at::native::distribution_elementwise_grid_stride_kernel<float, 4, normal_and_transform<>>", "pointwise"),
    ("void at::native::reduce_kernel<512, 1, ReduceOp<float, MeanOps<float>>>(...)", "reduction"),
    ("void at::native::(anonymous namespace)::CatArrayBatchedCopy<at::native::OpaqueType<2u>, 3, 64, 64>(...)", "copy"),
    ("void at::native::elementwise_kernel<128, 2, gpu_kernel_impl_nocast<direct_copy_kernel_cuda(...)>>(...)", "copy"),
    ("void cudnn::engines_precompiled::nchwToNhwcKernel<__nv_bfloat16, __nv_bfloat16, float>(...)", "copy"),
    ("void tensorTransformGeneric<__nv_bfloat16, __nv_bfloat16, float>(cudnnTensorTransformStruct)", "copy"),
    ("triton_red_fused_add_addmm_native_layer_norm_7", "triton"),
    ("triton_poi_fused_convolution_mul_3", "triton"),
    ("triton_tem_fused_addmm_gelu_t_view_15", "gemm"),
    ("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "communication"),
    ("ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*, unsigned long, ncclWork*)", "communication"),
    ("ncclDevKernel_Generic_4(ncclDevKernelArgsStorage<4096ul>) [clone .kd]", "communication"),
    (
        "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 2>(vllm::RankData*, vllm::RankSignals, ...)",
        "communication",
    ),
    ("_ZN4vllm26cross_device_reduce_2stageI14__nv_bfloat16Li2EEEvPNS_8RankDataE", "communication"),
    ("void sglang::cross_device_reduce_2stage<__half, 8>(sglang::RankData*, ...)", "communication"),
    ("void (anonymous namespace)::multimem_all_reduce_kernel<c10::BFloat16, 16>(...)", "communication"),
    ("void (anonymous namespace)::two_shot_all_reduce_kernel_inplace<c10::BFloat16, 16, 2>(...)", "communication"),
    ("c10d::symmetric_memory::barrier_kernel(unsigned int**, int, int, int, unsigned long)", "communication"),
    ("void tensorrt_llm::kernels::oneShotAllReduceKernel<float, 8>(...)", "communication"),
    ("void flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport<...>(...)", "communication"),
    ("nvshmemi_alltoall_on_stream_kernel(int)", "communication"),
    ("void deep_ep::intranode::dispatch<8, 768, 8192>(int4*, float*, ...)", "communication"),
    ("void deep_ep::internode_ll::combine<...>(...)", "communication"),
    # They stay on their GPU, whatever the words in their names.
    ("void deep_ep::layout::get_dispatch_layout<256, 32, 8>(long const*, int*)", "other"),
    ("triton_poi_fused_add_all_reduce_4", "triton"),
    ("_overall_reduce_kernel", "reduction"),
    ("small_gather_kernel", "copy"),
    ("void layer_norm_kernel<float, WarpAllReduce>(...)", "normalization"),
    ("void at::native::_scatter_gather_elementwise_kernel<128, 8, reduce_scatter_add<float>>(...)", "copy"),
    ("void compute_cuda_kernel<long>(long const*, long const*, long*, long, long)", "other"),
]


@pytest.mark.parametrize(("name", "family"), REAL)
def test_real_kernels_are_told_by_their_names(name: str, family: str) -> None:
    assert family_of(name) == family


def test_of_each_family_it_is_told_what_inductor_wrote(tmp_path: Path) -> None:
    names = ("nvjet_a", "triton_tem_fused_mm_3", "triton_poi_fused_add_0")
    found = analyze(make_trace(tmp_path, [make_kernel(i, i + 1, name=name) for i, name in enumerate(names)])).kernels
    told = [(each.family, each.count, each.triton_count, each.triton_us) for each in found.by_family]
    assert told == [("gemm", 2, 1, 1.0), ("triton", 1, 1, 1.0)]
    assert found.triton_count == 2


def codes_of(folder: Path, events: list[Json], **options: str) -> set[str]:
    return {each.code for each in analyze(make_trace(folder, events), **options).health}


def scope_of(folder: Path, events: list[Json], window: str = "auto") -> Scope:
    return find_scope(make_trace(folder, events), window)


def test_a_launch_from_a_thread_without_spans_belongs_to_the_span_around_it(tmp_path: Path) -> None:
    backward = [make_call(20, 21, correlation=1, thread=9), make_kernel(22, 23, correlation=1)]
    assert scope_of(tmp_path, [make_span(0, 100), *backward]).activities["step"].to_list() == [0]
    two = [make_span(0, 100, name="work"), make_span(10, 50, name="work", thread=2)]
    scope = scope_of(tmp_path, [*two, *backward], window="work")
    assert (scope.activities["step"].to_list(), scope.doubtful) == ([1], 1)
    assert "ambiguous_steps" in codes_of(tmp_path, [*two, *backward], window="work")


@pytest.mark.parametrize(
    ("span", "index"),
    [
        # A user's own marks; as old profilers wrote it, and one whose number no column holds, which is its place.
        (make_span(0, 10, name="step#4"), 4),
        (make_span(0, 10, name="iteration#4"), 4),
        (make_op(0, 10, name="ProfilerStep#7"), 7),
        (make_span(0, 10, name="ProfilerStep#" + "9" * 30), 0),
    ],
)
def test_steps_of_other_kinds_are_found(tmp_path: Path, span: Json, index: int) -> None:
    assert [each.index for each in scope_of(tmp_path, [span, *launched(1, 1, 1)]).spans] == [index]


def test_the_profiler_s_own_steps_come_before_the_user_s(tmp_path: Path) -> None:
    marks = [make_span(0, 10, name="ProfilerStep#3"), make_span(0, 4, name="step#7"), make_span(4, 10, name="step#8")]
    assert [each.index for each in scope_of(tmp_path, [*marks, *launched(1, 1, 1)]).spans] == [3]


def test_a_call_that_waits_is_nobody_s_launch_where_another_carries_the_id(tmp_path: Path) -> None:
    events = [
        make_call(0, 1, correlation=7),
        {**make_call(2, 3, correlation=7, name="cudaStreamSynchronize"), "pid": 200},
        make_kernel(4, 5, correlation=7),
    ]
    assert scope_of(tmp_path, events).activities["call"].to_list() == [0]
    assert "ambiguous_correlations" not in codes_of(tmp_path, events)


def test_a_driver_s_call_inside_the_runtime_s_is_the_same_launch(tmp_path: Path) -> None:
    events = [
        make_call(0, 5, correlation=7),
        make_call(1, 2, correlation=7, name="cuLaunchKernel", category="cuda_driver"),
        make_kernel(4, 6, correlation=7),
    ]
    assert analyze(make_trace(tmp_path, events)).launches.count == 1
    assert "ambiguous_correlations" not in codes_of(tmp_path, events)


def test_steps_are_chosen_by_their_numbers(tmp_path: Path) -> None:
    marked = [make_span(100 * at, 100 * at + 10, name=f"ProfilerStep#{at + 3}") for at in range(5)]
    work = [event for at in range(5) for event in launched(100 * at + 1, 1, at + 1)]
    trace = make_trace(tmp_path, [*marked, *work])
    assert [step.index for step in analyze(trace, steps=(4, 6)).steps] == [4, 5, 6]
    with pytest.raises(TracekitError, match="its steps are 3 to 7"):
        analyze(trace, steps=(9, 10))
    with pytest.raises(TracekitError, match="leave --window whole out"):
        analyze(trace, window="whole", steps=(3, 3))


def test_more_windows_of_steps_than_are_analyzed_together_are_refused_with_the_steps_to_ask_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(analysis_window, "MOST_WINDOWS", 5)
    steps = [make_span(100 * at, 100 * at + 90, name=f"tracekit.step#{at}") for at in range(3)]
    work = [make_kernel(100 * at, 100 * at + 9, device=device) for at in range(3) for device in (0, 1)]
    trace = make_trace(tmp_path, [*steps, *work])
    with pytest.raises(TracekitError, match="--steps N-M with at most 2 steps"):
        analyze(trace)
    assert len(analyze(trace, steps=(1, 2)).steps) == 2
