from tests.sides import make_analysis, make_side

from tracekit.report.sections.kernels import every_kernel, family_table, times_by_family

KERNELS = {
    "nvjet_a": ("gemm", 4, 40.0),
    "triton_tem_fused_addmm_1": ("gemm", 2, 12.0),
    "triton_tem_fused_convolution_0": ("convolution", 2, 6.0),
    "triton_poi_fused_add_0": ("triton", 6, 18.0),
}


def test_what_inductor_wrote_from_templates_stands_apart_and_adds_up_to_the_family():
    side = make_side("compiled", analysis=make_analysis(KERNELS))
    # Per step, of two.
    assert times_by_family((("", side),)) == {
        "gemm": [(2.0, 20.0)],
        "gemm (Triton)": [(1.0, 6.0)],
        "convolution (Triton)": [(1.0, 3.0)],
        "triton": [(3.0, 9.0)],
    }
    gemm = side.analysis.kernels.by_family[0]
    assert (gemm.count, gemm.total_us, gemm.triton_count, gemm.triton_us) == (6, 52.0, 2, 12.0)
    assert [row[0] for row in family_table((("", side),)).rows] == list(times_by_family((("", side),)))


def test_a_name_that_is_shortened_stands_whole_in_what_its_row_opens_to():
    long = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>(int, float)"
    found = every_kernel(
        make_side("compiled", analysis=make_analysis({"nvjet_a": ("gemm", 4, 40.0), long: ("x", 2, 9.0)}))
    )
    assert [(row.label != name, row.evidence) for row, name in zip(found.rows, ("nvjet_a", long), strict=True)] == [
        (False, ()),
        (True, (long,)),
    ]
