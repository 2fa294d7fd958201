"""Which operations the graphs of a SavedModel may hold: those that compute, none that touch files or call Python."""

import re
from pathlib import Path
from typing import Any

from auditor.collectors.extras import needed
from auditor.collectors.loading.allowed import allowed
from auditor.collectors.loading.damage import named
from auditor.errors import InputError

__all__ = ["refuse"]

# Of the operations with a state, or with an effect beside their result, those that predictions need.
_STATEFUL = allowed(
    """
    AnonymousHashTable AnonymousMutableHashTable Assert AssignAddVariableOp AssignSubVariableOp AssignVariableOp Case
    CheckNumerics CheckNumericsV2 CudnnRNN CudnnRNNBackprop CudnnRNNBackpropV2 CudnnRNNBackpropV3 CudnnRNNV2 CudnnRNNV3
    DestroyResourceOp DisableCopyOnRead Empty HashTableV2 If InitializeTableV2 LookupTableExportV2 LookupTableFindV2
    LookupTableImportV2 LookupTableInsertV2 LookupTableSizeV2 Multinomial MutableHashTableV2 ParameterizedTruncatedNormal
    RandomGamma RandomPoisson RandomPoissonV2 RandomShuffle RandomStandardNormal RandomUniform RandomUniformInt
    ReadVariableOp ResourceGather ResourceGatherNd ResourceScatterAdd ResourceScatterUpdate ResourceStridedSliceAssign
    RngReadAndSkip RngSkip SampleDistortedBoundingBoxV2 StatefulPartitionedCall StatefulRandomBinomial
    StatefulStandardNormalV2 StatefulTruncatedNormal StatefulUniform StatefulUniformFullInt StatefulUniformInt
    StatelessRandomGetAlg TensorArrayCloseV3 TensorArrayConcatV3 TensorArrayGatherV3 TensorArrayGradV3 TensorArrayReadV3
    TensorArrayScatterV3 TensorArraySizeV3 TensorArraySplitV3 TensorArrayV3 TensorArrayWriteV3 TruncatedNormal VarHandleOp
    VarIsInitializedOp VariableShape While
    """
)
# Operations without a state that read, write or run what is not in the graph all the same.
_TOUCHING = re.compile(r"^_|^Copy|Dataset|Debug|File|Iterator|PyFunc|Reader|Summary|TRT|TfLite|Vocab|Xla")
# The functions that TensorFlow adds for saving and restoring hold these; nothing in a model calls them.
_SAVING = frozenset({"MergeV2Checkpoints", "RestoreV2", "SaveV2", "ShardedFilename"})
_SHOWN = 8


def refuse(path: Path) -> None:
    """Refuse a SavedModel with operations that do more than compute.

    Raises:
        InputError: Such an operation, by name.
    """
    loader = needed(
        "tensorflow.python.saved_model.loader_impl", purpose="loading a SavedModel", extra="tensorflow"
    )
    found: set[str] = set()
    for part in loader.parse_saved_model(str(path)).meta_graphs:
        found |= _found(part)
    if found:
        listed = ", ".join(sorted(found)[:_SHOWN]) + (", ..." if len(found) > _SHOWN else "")
        raise InputError(
            f"{named(path)} holds operations that may touch files or run other code: {listed}; save the model without"
            " them or as ONNX, or, if you trust its source as you would a program, pass trust_pickle=True"
            " (--trust-pickle)."
        )


def _found(part: Any) -> set[str]:
    """Return the operations to refuse in the main graph and in every function."""
    library = part.graph_def.library
    called = {
        name for function in library.function for node in function.node_def for name in _functions(node)
    }
    called |= set(part.object_graph_def.concrete_functions)
    called |= {item.gradient_func for item in (*library.gradient, *library.registered_gradients)}
    own = {function.signature.name for function in library.function}
    found = _refused(part.graph_def.node, own) - _SAVING
    for function in library.function:
        spared = frozenset() if function.signature.name in called else _SAVING
        found |= _refused(function.node_def, own) - spared
    return found


def _functions(node: Any) -> set[str]:
    """Return the names of the functions that a node may call."""
    names = {node.op}
    for value in node.attr.values():
        names |= {value.func.name, *(item.name for item in value.list.func)}
    return names


def _refused(nodes: Any, own: set[str]) -> set[str]:
    return {name for name in {node.op for node in nodes} - own if _is_refused(name)}


def _is_refused(operation: str) -> bool:
    registry = needed(
        "tensorflow.python.framework.op_def_registry", purpose="loading a SavedModel", extra="tensorflow"
    )
    definition = registry.get(operation)
    if definition is None or operation in _SAVING:
        return True
    if definition.is_stateful:
        return operation not in _STATEFUL
    return _TOUCHING.search(operation) is not None
