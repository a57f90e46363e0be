"""What kvkeep.mlx needs besides kvkeep."""


def require_mlx_lm() -> None:
    """ImportError that says what to type."""
    try:
        import mlx.core
        import mlx_lm
    except ImportError as error:
        raise ImportError(
            f"kvkeep.mlx needs mlx-lm: {error} "
            "(run: pip install mlx-lm; on Linux without a GPU also mlx-cpu)"
        ) from error
