"""Prefetching of cache lines.

A load that misses the cache stalls the instructions that depend on it until the data arrives; a prefetch does not. It
affects only speed, never results, so `prefetch` does nothing when the JIT is off.
"""

from typing import Any

import numpy as np
from numba import config, types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

if getattr(config, "DISABLE_JIT", 0):

    def prefetch(array: NDArray[Any], index: np.uint64) -> None:
        """Do nothing."""

else:

    @intrinsic
    def prefetch(typing_context: Any, array: Any, index: Any) -> Any:
        """Start loading array[index] into all caches. An index out of bounds is harmless and is not checked."""

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            ir: Any = vars(cgutils)["ir"]  # llvmlite's, without importing it: kernels import numpy and numba only
            data = context.make_array(array)(context, builder, arguments[0]).data
            address = builder.bitcast(builder.gep(data, [arguments[1]]), ir.IntType(8).as_pointer())
            word = ir.IntType(32)
            function = builder.module.declare_intrinsic(
                "llvm.prefetch", [address.type], ir.FunctionType(ir.VoidType(), [address.type, word, word, word])
            )
            read, keep_everywhere, data_cache = ir.Constant(word, 0), ir.Constant(word, 3), ir.Constant(word, 1)
            builder.call(function, [address, read, keep_everywhere, data_cache])
            return context.get_dummy_value()

        return types.void(array, index), generate
