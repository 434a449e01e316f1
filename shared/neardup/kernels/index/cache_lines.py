"""Comparison of whole cache lines of keys with a query. A line is a vector of eight keys.

LLVM does not vectorize the eight distances on its own, so the vector operation is written as an intrinsic. On
processors with a vector population count, two lines take a handful of instructions; elsewhere LLVM emulates it.
"""

from typing import Any

import numpy as np
from numba import config, types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

LINE = 8
"""Number of keys in a cache line."""

if getattr(config, "DISABLE_JIT", 0):

    def is_one_within(
        keys: NDArray[np.uint64], one: np.uint64, other: np.uint64, query: np.uint64, limit: np.uint64
    ) -> bool:
        """Compare key by key, without the memory beside the keys. For runs with the JIT off."""
        places = (int(np.int64(at)) for at in (one, other))
        lines = (keys[max(at, 0) : at + LINE] for at in places)
        return any(int(key ^ query).bit_count() <= limit for line in lines for key in line)

else:

    @intrinsic
    def is_one_within(typing_context: Any, keys: Any, one: Any, other: Any, query: Any, limit: Any) -> Any:
        """Return True if a key of the lines at `one` and `other` differs in at most `limit` bits from the query.

        Bounds are not checked. Each position must be the start of a cache line with at least one key in it, or of eight
        keys within the array. A line may extend beyond either end of the keys; a position before the first key has
        wrapped around.
        """

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            tools: Any = cgutils
            ir = tools.ir  # llvmlite's, without importing it: kernels import numpy and numba only
            word = ir.IntType(64)
            vector = ir.VectorType(word, LINE)
            data = context.make_array(keys)(context, builder, arguments[0]).data
            name, of_vectors = f"llvm.ctpop.v{LINE}i64", ir.FunctionType(vector, [vector])
            count_bits = tools.get_or_insert_function(builder.module, of_vectors, name)

            def everywhere(value: Any) -> Any:
                first = builder.insert_element(ir.Constant(vector, ir.Undefined), value, ir.IntType(32)(0))
                zeros = ir.Constant(ir.VectorType(ir.IntType(32), LINE), [0] * LINE)
                return builder.shuffle_vector(first, ir.Constant(vector, ir.Undefined), zeros)

            def distances(at: Any) -> Any:
                address = builder.bitcast(builder.gep(data, [at]), vector.as_pointer())
                return builder.call(count_bits, [builder.xor(builder.load(address, align=8), asked)])

            asked, most = everywhere(arguments[3]), everywhere(arguments[4])
            within = [builder.icmp_unsigned("<=", distances(at), most) for at in arguments[1:3]]
            mask = builder.bitcast(builder.or_(*within), ir.IntType(LINE))
            return builder.icmp_unsigned("!=", mask, ir.Constant(ir.IntType(LINE), 0))

        return types.boolean(keys, one, other, query, limit), generate
