"""What may be in a file of a model: lists of what is harmless, and the trust that its user adds."""

import importlib
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from auditor.collectors.base.scorer import explained, import_optional
from auditor.core import validate
from auditor.core.errors import AuditorError, InputError

# --- Sentences about files of models that cannot be read ---


def named(path: Path) -> str:
    """Return a file as sentences call it: by its name, for its place is nobody's business."""
    return f"{'folder' if path.is_dir() else 'file'} {path.name!r}"


@contextmanager
def readable(path: Path, *, kind: str) -> Iterator[None]:
    """Let whatever a reader raises become one sentence, with the cause kept."""
    try:
        yield
    except AuditorError:
        raise
    except Exception as error:
        reason = validate.one_line(error) or type(error).__name__
        for place in (str(path.resolve()), str(path)):
            reason = reason.replace(place, path.name)
        raise InputError(
            f"{named(path)} must be {kind}, but it cannot be read: {reason}; is it complete?"
        ) from error


# --- What the code in a TorchScript file may call: operations that compute, none that touch files or other processes ---
#
# Some of it runs while the file is loaded, so it is looked at before, as text.


_STRING_OR_COMMENT = re.compile(
    r'"""(?:\\.|[^\\])*?"""|\'\'\'(?:\\.|[^\\])*?\'\'\'|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|#[^\n]*',
    re.DOTALL,
)
# An attribute by its name as TorchScript writes it, which is not how to hide the name of an operation.
_ATTRIBUTE = re.compile(r'\bgetattr\([\w.\[\]]*(?:\(\w+\))?[\w.\[\]]*, "([^"\'\\]*)"\)')
_SCRIPT_TOUCHING = re.compile(r"\b(?:save|from_file|rpc_\w+|PythonOp|IgnoredPythonOp|getattr)\b")
_OTHER = re.compile(
    r"(?<![\w.])ops\b(?!\.(?:aten|prim|quantized|_quantized|mkldnn|mkldnn_prepacked|sparse|torchvision)\.)(?:\W+\w+){0,2}"
    r"|\btorch\W+classes\b(?!\.(?:quantized|rnn|sparse|mkldnn)\b)(?:\W+\w+)?"
)
_HELD = re.compile(rb"torch[.\n]classes[.\n](?!(?:quantized|rnn|sparse|mkldnn)\b)\w*")
_SHOWN = 8


def refuse_script(torch: Any, path: Path) -> None:
    """Refuse a TorchScript file whose code touches files, other processes or libraries.

    Raises:
        InputError: Such an operation, by name.
    """
    reader = torch._C.PyTorchFileReader(str(path))  # noqa: SLF001 - what it reads is what will be loaded
    found: set[str] = set()
    for name in reader.get_all_records():
        if name.endswith(".py"):
            found.update(touching_operations(reader.get_record(name).decode("utf-8", "replace")))
        elif name.endswith(".pkl"):
            found.update(item.decode().replace("\n", ".") for item in _HELD.findall(reader.get_record(name)))
    _refuse_operations(path, found)


def _refuse_operations(path: Path, found: set[str]) -> None:
    if found:
        listed = ", ".join(sorted(found)[:_SHOWN]) + (", ..." if len(found) > _SHOWN else "")
        raise InputError(
            f"{named(path)} holds operations that may touch files or run other code: {listed}; save the model without"
            " them or as ONNX, or, if you trust its source as you would a program, pass trust_pickle=True"
            " (--trust-pickle)."
        )


def touching_operations(code: str) -> Iterator[str]:
    """Yield the names of operations to refuse."""
    code = _STRING_OR_COMMENT.sub(lambda found: "" if found[0].startswith("#") else found[0], code)
    count = 1
    while count:
        yield from (name for name in _ATTRIBUTE.findall(code) if _SCRIPT_TOUCHING.search(name))
        code, count = _ATTRIBUTE.subn("_", code)
    code = _STRING_OR_COMMENT.sub('""', code)
    yield from _SCRIPT_TOUCHING.findall(code)
    yield from (" ".join(found.split()) for found in _OTHER.findall(code))


# --- Lists of names that are allowed, written as text ---


def _allowed(names: str) -> frozenset[str]:
    """Return the words of a text as a set.

    >>> sorted(_allowed("If Case While"))
    ['Case', 'If', 'While']
    """
    return frozenset(names.split())


# --- Which parts a configuration of Keras may name: those listed here, for Keras imports whatever a file names ---
#
# The list holds parts that compute on numbers alone. Left out are those that run functions (Lambda), read files or other
# models (StringLookup, TextVectorization, TFSMLayer) or wrap other frameworks, and everything that will yet be invented.


_SIZES = ("1D", "2D", "3D")
_LAYERS = _allowed(
    """
    Activation ActivityRegularization Add AdditiveAttention AlphaDropout Attention Average BatchNormalization
    Bidirectional CategoryEncoding CenterCrop Concatenate Dense DepthwiseConv1D DepthwiseConv2D Discretization Dot Dropout
    ELU EinsumDense Embedding Flatten GRU GRUCell GaussianDropout GaussianNoise GroupNormalization GroupQueryAttention
    HashedCrossing Hashing Identity InputLayer LSTM LSTMCell LayerNormalization LeakyReLU LocallyConnected1D
    LocallyConnected2D Masking Maximum Minimum MultiHeadAttention Multiply Normalization PReLU Permute RMSNormalization RNN
    RandomBrightness RandomContrast RandomCrop RandomFlip RandomHeight RandomRotation RandomTranslation RandomWidth
    RandomZoom ReLU RepeatVector Rescaling Reshape Resizing ReversibleEmbedding SeparableConv1D SeparableConv2D SimpleRNN
    SimpleRNNCell Softmax SpectralNormalization StackedRNNCells Subtract ThresholdedReLU TimeDistributed UnitNormalization
    """
).union(
    (f"Conv{size}Transpose" for size in _SIZES),
    (
        name + size
        for size in _SIZES
        for name in (
            *("AveragePooling", "Conv", "ConvLSTM", "Cropping", "GlobalAveragePooling", "GlobalMaxPooling"),
            *("MaxPooling", "SpatialDropout", "UpSampling", "ZeroPadding"),
        )
    ),
)
_ACTIVATIONS = _allowed(
    """
    celu elu exponential gelu glu hard_shrink hard_sigmoid hard_silu hard_swish hard_tanh leaky_relu linear log_sigmoid
    log_softmax mish relu relu6 selu sigmoid silu soft_shrink softmax softplus softsign sparse_plus sparsemax squareplus
    swish tanh tanh_shrink
    """
)
_INITIALIZERS = _allowed(
    """
    Constant GlorotNormal GlorotUniform HeNormal HeUniform Identity IdentityInitializer LecunNormal LecunUniform Ones
    Orthogonal OrthogonalInitializer RandomNormal RandomUniform TruncatedNormal VarianceScaling Zeros
    """
)
_OPERATIONS = _allowed(  # of Keras 3, on tensors
    """
    Absolute Add Concatenate Divide Exp ExpandDims GetItem Log Matmul Max Maximum Mean Min Minimum Multiply Negative Power
    Relu Reshape Sigmoid Softmax Sqrt Square Squeeze Subtract Sum Tanh Transpose TrueDivide
    """
)
_FUNCTIONAL = frozenset({"Functional"})
_ALLOWED: dict[str, frozenset[str]] = {
    "keras": frozenset({"Functional", "Model", "Sequential", "DTypePolicy"}),
    "keras.models": frozenset({"Functional", "Model", "Sequential"}),
    "keras.layers": _LAYERS,
    "keras.initializers": _INITIALIZERS,
    "keras.regularizers": frozenset({"L1", "L1L2", "L2", "OrthogonalRegularizer"}),
    "keras.constraints": frozenset({"MaxNorm", "MinMaxNorm", "NonNeg", "RadialConstraint", "UnitNorm"}),
    "keras.mixed_precision": frozenset({"Policy"}),
    "keras.dtype_policies": frozenset({"DTypePolicy"}),
    "keras.src.engine.functional": _FUNCTIONAL,
    "keras.src.models.functional": _FUNCTIONAL,
    "keras.src.engine.sequential": frozenset({"Sequential"}),
    "keras.src.models.sequential": frozenset({"Sequential"}),
    "keras.src.ops.numpy": _OPERATIONS,
    "keras.src.ops.nn": _OPERATIONS,
}
# Values that Keras writes as objects without a module.
_VALUES = frozenset({"__tensor__", "__keras_tensor__", "__numpy__", "__tuple__", "__slice__", "__ellipsis__"})
_OF_SAVED_MODELS = frozenset({"TypeSpec", "TensorShape", "InputSpec", "__tuple__", "__ellipsis__"})
_NAMELESS = _OF_SAVED_MODELS.union(*_ALLOWED.values()) - _OPERATIONS | _LAYERS
_WRAPPED = "keras.src.layers.core.tf_op_layer"  # a function of TensorFlow as a layer
_WRAPPERS = ("TFOpLambda", "SlicingOpLambda")
_FUNCTIONS = _allowed(
    """
    __operators__.add __operators__.getitem cast clip_by_value concat expand_dims identity linalg.matmul math.abs math.add
    math.divide math.exp math.log math.maximum math.minimum math.multiply math.negative math.pow math.reduce_max
    math.reduce_mean math.reduce_min math.reduce_sum math.sigmoid math.softplus math.sqrt math.square math.subtract
    math.tanh math.truediv nn.gelu nn.relu nn.silu nn.softmax reshape squeeze stack transpose
    """
)
_PRIVATE = "tensorflow_privacy.privacy.keras_models.dp_keras_model"


def without_training(config: Any) -> Any:
    """Return a configuration without what is for training alone.

    Models of tensorflow-privacy, which Keras cannot find again and which predict the same, become plain ones.
    """
    if isinstance(config, list):
        return [without_training(item) for item in config]
    if not isinstance(config, dict):
        return config
    found = {name: without_training(value) for name, value in config.items() if name != "compile_config"}
    if found.get("module") == _PRIVATE:
        inner = found.get("config")
        functional = isinstance(inner, dict) and "input_layers" in inner
        found |= {
            "module": "keras",
            "class_name": "Model" if functional else "Sequential",
            "registered_name": None,
        }
    return found


def unknown_parts(config: Any) -> Iterator[str]:
    """Yield the names of what a configuration asks for at any depth and is not on the list, functions included."""
    for item in _dictionaries(config):
        for name, value in item.items():
            if name.endswith("activation") and isinstance(value, str) and value not in _ACTIVATIONS:
                yield f"keras.activations.{value}"
        if "class_name" in item and not is_known(item):
            yield _name(item)


def is_known(item: dict[str, Any], *, saved_model: bool = False) -> bool:
    """Return whether an object is on the list; those of a SavedModel need name no module."""
    name, module, inner = item["class_name"], item.get("module"), item.get("config")
    if not isinstance(name, str) or not isinstance(module, str | None) or _is_renamed(item):
        return False
    if name in _WRAPPERS:
        function = inner.get("function") if isinstance(inner, dict) else None
        known = isinstance(function, str) and function in _FUNCTIONS
        return known and (module == _WRAPPED or (saved_model and module is None))
    if name == "function":
        return (
            module in {"builtins", "keras.activations"} and isinstance(inner, str) and inner in _ACTIVATIONS
        )
    if module is None:
        return name in (_NAMELESS if saved_model else _VALUES)
    if module == "builtins":  # where Keras 3 puts such values
        return name in _VALUES
    return name in _ALLOWED.get(module, ())


def _is_renamed(item: dict[str, Any]) -> bool:
    """Return whether an object is to be found among those registered in this process, whatever else it says."""
    registered, inner = item.get("registered_name"), item.get("config")
    names = [None, item["class_name"], *([inner, "function"] if item["class_name"] == "function" else [])]
    return registered not in names


def _name(item: dict[str, Any]) -> str:
    """Return what an object is called in sentences and among trusted types."""
    inner = item.get("config")
    if item["class_name"] in _WRAPPERS and isinstance(inner, dict):
        return f"tf.{inner.get('function')}"
    last = inner if item["class_name"] == "function" else item["class_name"]
    if _is_renamed(item):
        last = item["registered_name"]
    return ".".join(str(part) for part in (item.get("module"), last) if part is not None)


def _dictionaries(config: Any) -> Iterator[dict[str, Any]]:
    waiting = [config]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            yield item
            waiting += item.values()
        elif isinstance(item, list):
            waiting += item


# --- Which operations the graphs of a SavedModel may hold: those that compute, none that touch files or call Python ---


# Of the operations with a state, or with an effect beside their result, those that predictions need.
_STATEFUL = _allowed(
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


def refuse_graph(path: Path) -> None:
    """Refuse a SavedModel with operations that do more than compute.

    Raises:
        InputError: Such an operation, by name.
    """
    loader = import_optional(
        "tensorflow.python.saved_model.loader_impl", purpose="loading a SavedModel", extra="tensorflow"
    )
    found: set[str] = set()
    for part in loader.parse_saved_model(str(path)).meta_graphs:
        found |= _found(part)
    _refuse_operations(path, found)


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
    registry = import_optional(
        "tensorflow.python.framework.op_def_registry", purpose="loading a SavedModel", extra="tensorflow"
    )
    definition = registry.get(operation)
    if definition is None or operation in _SAVING:
        return True
    if definition.is_stateful:
        return operation not in _STATEFUL
    return _TOUCHING.search(operation) is not None


# --- What the caller trusts ---


@dataclass(frozen=True)
class Trust:
    """What may be done to load a model.

    Attributes:
        factory: What builds the network that a state dict fills: a callable, or "module:function".
        pickles: Whether code in a pickle may run.
        types: Names of further types that may be built.
    """

    factory: Callable[[], Any] | str | None = None
    pickles: bool = False
    types: frozenset[str] = frozenset()

    def built(self) -> Any:
        """Return what the factory builds.

        Raises:
            InputError: A factory that cannot be found or fails.
        """
        factory = _imported(self.factory) if isinstance(self.factory, str) else self.factory
        if not callable(factory):
            raise InputError(f"factory must be a callable or 'module:function', got {self.factory!r}.")
        with explained("factory must build the network without arguments, but it failed", with_kind=True):
            return factory()


def _imported(name: str) -> Any:
    module, colon, function = name.partition(":")
    if not (module and colon and function):
        raise InputError(f"factory must be written 'module:function', got {name!r}.")
    here = os.getcwd()  # noqa: PTH109 - the import path holds strings
    sys.path.insert(0, here)
    try:
        found: Any = importlib.import_module(module)
        for part in function.split("."):
            found = getattr(found, part)
    except Exception as error:
        reason = ": ".join(filter(None, (type(error).__name__, validate.one_line(error))))
        raise InputError(
            f"factory {name!r} must be importable from the working directory, but that failed: {reason}."
        ) from error
    finally:
        if here in sys.path:
            sys.path.remove(here)
    return found
